/* Any message from and to bytes, in an arena with a budget. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include <skrull/error.h>

struct arena;

/* A protobuf-c allocator over `arena`; its free does nothing. Valid as long as the arena. */
ProtobufCAllocator codec_wire_allocator(struct arena *arena);

/*
 * Decodes `bytes` in `arena` (never free_unpacked it). INVALID_ARGUMENT: not such a message, nested
 * deeper than 16, a string with NUL or that is not UTF-8, a number past 32 bits where the field has no
 * more; RESOURCE_EXHAUSTED: past the arena's budget. Enum values are not checked against their names.
 */
int codec_wire_decode(struct arena *arena, const ProtobufCMessageDescriptor *descriptor,
                      const uint8_t *bytes, size_t len, ProtobufCMessage **ret_message,
                      struct skrull_error *err);

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
 * deeper than 16, a string with NUL or that is not UTF-8, a number past 32 bits where the field has
 * no more; RESOURCE_EXHAUSTED: past the arena's budget. Enum values are not checked against their
 * names.
 */
int codec_wire_decode(struct arena *arena, const ProtobufCMessageDescriptor *descriptor,
                      const uint8_t *bytes, size_t len, ProtobufCMessage **ret_message,
                      struct skrull_error *err);

/* Encodes a message into bytes in `arena`; an empty message has 0 bytes. RESOURCE_EXHAUSTED: out of
 * memory. */
int codec_wire_encode(struct arena *arena, const ProtobufCMessage *message, uint8_t **ret_bytes,
                      size_t *ret_len, struct skrull_error *err);

/* Generated structs have `char *` where nobody writes: `text`, or "" for NULL. */
char *codec_wire_borrow(const char *text);

/* Puts "?" in place of whatever a string of the wire or a line of a log cannot hold: control
 * characters, bytes that are not UTF-8. */
void codec_wire_clean_text(char *text);

/* INVALID_ARGUMENT, naming the field, where a string is longer than `max_len` bytes, or a list
 * longer than `max_count` entries. */
int codec_wire_check_text(const char *field, const char *text, size_t max_len,
                          struct skrull_error *err);
int codec_wire_check_count(const char *field, size_t count, size_t max_count,
                           struct skrull_error *err);

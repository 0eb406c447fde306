/*
 * Canonical proto3 JSON of any message, by its descriptor: lowerCamelCase names, 64-bit integers as
 * strings, zero fields left out, enums by name. The kinds of fields that our schema lacks (bytes,
 * float, the special forms of google.protobuf) are not supported.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#include <skrull/error.h>

struct arena;

/* One document, malloc'd (free it): indented where `is_pretty`, else on one line, no final newline.
 * NULL: out of memory. Linear in the message. */
char *codec_json_encode(const ProtobufCMessage *message, bool is_pretty);

/*
 * Parses a document into a message in `arena`. Takes names in lowerCamelCase and snake_case, whole
 * numbers as numbers or strings, enums by name or number; null is the default. Unknown names are
 * refused, and a name given twice. INVALID_ARGUMENT names the place ("ranks[3].step: ..."), or the
 * line where it is no JSON; RESOURCE_EXHAUSTED: past the arena's budget. Linear in `len`.
 */
int codec_json_decode(struct arena *arena, const ProtobufCMessageDescriptor *descriptor,
                      const char *text, size_t len, ProtobufCMessage **ret_message,
                      struct skrull_error *err);

/* Bytes of one value of this type in a message's struct or list. */
size_t codec_json_value_size(ProtobufCType type);

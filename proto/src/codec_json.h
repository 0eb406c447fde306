/*
 * Canonical proto3 JSON of any message, by its descriptor: lowerCamelCase names, 64-bit integers as
 * strings, zero fields left out, enums by name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#include <skrull/error.h>

struct arena;

/* One document, malloc'd (free it): indented where `is_pretty`, else on one line, no final newline.
 * NULL: out of memory. */
char *codec_json_encode(const ProtobufCMessage *message, bool is_pretty);

/* Parses a document into a message in `arena`. Unknown names are refused. INVALID_ARGUMENT names the
 * place. */
int codec_json_decode(struct arena *arena, const ProtobufCMessageDescriptor *descriptor,
                      const char *text, size_t len, ProtobufCMessage **ret_message,
                      struct skrull_error *err);

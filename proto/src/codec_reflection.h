/*
 * grpc.reflection: requests about the schema and their answers, both as bytes. v1 and v1alpha are
 * the same on the wire.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

#include "codec_rpc.h"

struct arena;
struct reflection;

/* The schema of descriptor_set.h, or another FileDescriptorSet, ready to be asked about. `set` is
 * copied. */
int reflection_new(const uint8_t *set, size_t len, struct reflection **ret_reflection,
                   struct skrull_error *err);

/* NULL is fine. */
void reflection_free(struct reflection *reflection);

/*
 * Answers one ServerReflectionRequest; what is not found is an answer too. INVALID_ARGUMENT: not
 * such a request. Any thread, one arena each.
 */
int reflection_answer(const struct reflection *reflection, struct arena *arena,
                      struct rpc_bytes request, struct rpc_bytes *ret_response,
                      struct skrull_error *err);

/*
 * Errors for programs: google.rpc.Status, the content of the trailer grpc-status-details-bin. It
 * holds an ErrorInfo (reason.def; domain "skrull"; metadata "method", "limit"), a RetryInfo where
 * the same call may do later, and a BadRequest where the message begins with a field of the
 * request.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

#include "codec_rpc.h"

struct arena;

struct rpc_status {
    int code;           /* of gRPC */
    const char *method; /* "GetPlan"; NULL: not one of the planner service's */
    int64_t retry_ms;   /* come back after so long; 0: does not help */
    size_t max_bytes;   /* details that do not fit are left out, the least useful first */
};

/* RESOURCE_EXHAUSTED: out of memory, or not even the code fits. */
int codec_status_pack(struct arena *arena, const struct skrull_error *why,
                      const struct rpc_status *status, struct rpc_bytes *ret,
                      struct skrull_error *err);

/* Sets reason and limit of `why` from details that a server sent; what is not ours or not known
 * changes nothing. INVALID_ARGUMENT: not such a message. */
int codec_status_unpack(struct arena *arena, struct rpc_bytes bytes, struct skrull_error *why,
                        struct skrull_error *err);

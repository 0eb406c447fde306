/* The service table: every method of our protos, and who handles it. */
#pragma once

#include <stddef.h>

/* A job of 1,024 data sets fits, and so does a batch of reports. */
#define METHOD_REQUEST_BYTES ((size_t)1 << 20)

/* The most of all: 2^20 lengths below 2^21 tokens, with loss tokens. */
#define METHOD_BATCH_BYTES ((size_t)8 << 20)

struct call;
struct rpc_ctx;

struct method {
    const char *path;                                       /* "/skrull.v1.PlannerService/GetJob" */
    const char *name;                                       /* "GetJob" */
    void (*handle)(struct rpc_ctx *ctx, struct call *call); /* NULL: not built yet */
    size_t max_request_bytes;
};

/* [method_count()]; the rows of methods.def. */
extern const struct method method_table[];
size_t method_count(void);

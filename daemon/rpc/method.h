/* The service table: every method of our protos, and who handles it. */
#pragma once

#include <stddef.h>

struct call;
struct rpc_ctx;

struct method {
    const char *path;                                       /* "/skrull.v1.PlannerService/GetJob" */
    const char *name;                                       /* "GetJob" */
    void (*handle)(struct rpc_ctx *ctx, struct call *call); /* NULL: not built yet */
};

/* [method_count()]; the rows of methods.def. */
extern const struct method method_table[];
size_t method_count(void);

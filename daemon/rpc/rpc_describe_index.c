/* DescribeIndex: opens, verifies and sums up a file under the data roots, on the pool. */
#include <stdlib.h>
#include <unistd.h>

#include "arena.h"
#include "index/index.h"
#include "loop/loop.h"
#include "rpc/call.h"
#include "rpc/handlers.h"
#include "rpc/rpc_ctx.h"

struct describe_op {
    struct rpc_ctx *ctx;
    struct call *call;
    struct rpc_describe_index request;
    struct index_stats stats;
    struct skrull_error err;
};

static int describe(struct describe_op *op)
{
    const struct index_options options = {.format = op->request.format};
    struct length_index *idx = NULL;
    uint64_t payload_hash;
    int fd, code;

    code = index_open_under_roots(op->request.path, op->ctx->roots.paths, op->ctx->roots.n_paths,
                                  &fd, &op->err);
    if (code < 0) {
        return code;
    }
    code = index_open(fd, op->request.path, &options, &idx, &op->err);
    if (code == 0) {
        code = index_verify(idx, &payload_hash, &op->err);
    }
    if (code == 0) {
        code = index_describe(idx, &op->stats, &op->err);
    }
    index_close(idx);
    (void)close(fd);
    return code;
}

static void work(void *arg)
{
    struct describe_op *op = (struct describe_op *)arg;
    int code = describe(op);

    if (code < 0) {
        op->err.code = code;
    }
}

static int pack(struct arena *arena, const struct index_stats *stats, struct rpc_bytes *ret,
                struct skrull_error *err)
{
    const size_t n_bins = sizeof(stats->bins) / sizeof(stats->bins[0]);
    struct rpc_index_stats reply = {
        .format = stats->format,
        .count = stats->count,
        .tokens = stats->tokens,
        .loss_tokens = stats->loss_tokens,
        .min = stats->min,
        .max = stats->max,
        .p50 = stats->p50,
        .p90 = stats->p90,
        .p99 = stats->p99,
        .p999 = stats->p999,
        .mean = stats->mean,
    };

    reply.bins = arena_alloc(arena, n_bins, sizeof(*reply.bins));
    if (!reply.bins) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    for (size_t i = 0; i < n_bins; i++) {
        if (stats->bins[i] > 0) {
            reply.bins[reply.n_bins].upper = (uint64_t)1 << i;
            reply.bins[reply.n_bins].count = stats->bins[i];
            reply.n_bins++;
        }
    }
    return codec_index_stats_pack(arena, &reply, ret, err);
}

static void done(void *arg)
{
    struct describe_op *op = (struct describe_op *)arg;
    struct rpc_bytes reply;

    if (op->err.code == 0) {
        int code = pack(call_arena(op->call), &op->stats, &reply, &op->err);

        if (code < 0) {
            op->err.code = code;
        }
    }
    if (op->err.code < 0) {
        call_fail(op->call, &op->err);
    } else {
        call_reply(op->call, reply);
    }
    free(op);
}

void rpc_describe_index(struct rpc_ctx *ctx, struct call *call)
{
    struct describe_op *op = calloc(1, sizeof(*op));
    struct skrull_error err = {0};
    int code = SKRULL_ERR_RESOURCE_EXHAUSTED;

    if (op) {
        op->ctx = ctx;
        op->call = call;
        code = codec_describe_index_request_unpack(call_arena(call), call_request(call),
                                                   &op->request, &err);
    }
    if (code == 0) {
        code = loop_work(ctx->loop, work, done, op);
    }
    if (code < 0) {
        free(op);
        err.code = code;
        call_fail(call, &err);
    }
}

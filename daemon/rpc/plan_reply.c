/* Shared by the calls that answer with a plan. Pure. */
#include "rpc/plan_reply.h"

#include <stdlib.h>

int plan_reply_too_large(struct skrull_error *err)
{
    return skrull_error_because(
        err, SKRULL_ERR_RESOURCE_EXHAUSTED, SKRULL_REASON_PLAN_TOO_LARGE, PLAN_REPLY_MAX_BYTES,
        "the plan has more than %zu bytes: ask by data_ranks, a part at a time",
        PLAN_REPLY_MAX_BYTES);
}

static int compare_ranks(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

int plan_reply_ranks(uint32_t *ranks, size_t *n_ranks, uint64_t n_grid, struct skrull_error *err)
{
    size_t n_unique = 0;

    if (*n_ranks > 0) {
        qsort(ranks, *n_ranks, sizeof(ranks[0]), compare_ranks);
    }
    for (size_t i = 0; i < *n_ranks; i++) {
        if (ranks[i] >= n_grid) {
            return skrull_error_because(err, SKRULL_ERR_INVALID_ARGUMENT,
                                        SKRULL_REASON_DATA_RANK_OUT_OF_RANGE, n_grid,
                                        "data_ranks: %u is out of range, 0 to %llu are allowed",
                                        ranks[i], (unsigned long long)(n_grid - 1));
        }
        if (n_unique == 0 || ranks[n_unique - 1] != ranks[i]) {
            ranks[n_unique++] = ranks[i];
        }
    }
    *n_ranks = n_unique;
    return 0;
}

int plan_reply_pack(struct arena *arena, const struct skrull_plan *plan, const uint32_t *ranks,
                    size_t n_ranks, struct rpc_bytes *ret, struct skrull_error *err)
{
    struct rpc_bytes reply;
    int code = codec_plan_pack(arena, plan, ranks, n_ranks, &reply, err);

    if (code < 0) {
        return code == SKRULL_ERR_RESOURCE_EXHAUSTED ? plan_reply_too_large(err) : code;
    }
    if (reply.len > PLAN_REPLY_MAX_BYTES) {
        return plan_reply_too_large(err);
    }
    *ret = reply;
    return 0;
}

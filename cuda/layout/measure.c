/* Sizes of a rank's buffers over all its micro-batches, from their shapes alone. Any thread. */
#include <skrull/layout.h>

#include <string.h>

#include "ckd.h"
#include "shape.h"

static void raise(uint32_t *limit, uint32_t value)
{
    if (value > *limit) {
        *limit = value;
    }
}

static int add_shape(struct skrull_layout_limits *limits, const struct shape *shape,
                     struct skrull_error *err)
{
    uint32_t distributed = 0, gathered = 0;

    for (uint32_t g = 0; g < shape->n_groups; g++) {
        const struct shape_group *group = &shape->groups[g];

        raise(&limits->group_size, group->size);
        raise(&limits->block_rows, group->rows);
        raise(&limits->gathered_rows, group->gathered_rows);
        distributed += group->rows;
        if (ckd_add(&gathered, gathered, group->gathered_rows)) {
            return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                    "plan: a micro-batch gathers 2^32 rows or more; lower "
                                    "batch.bucket_tokens");
        }
    }
    raise(&limits->rows, shape->rows);
    raise(&limits->tokens, shape->tokens);
    raise(&limits->local_rows, shape->groups[shape->n_groups].rows);
    raise(&limits->distributed_rows, distributed);
    raise(&limits->distributed_gathered, gathered);
    raise(&limits->sequences, shape->n_sequences);
    raise(&limits->groups, shape->n_groups);
    return 0;
}

int skrull_layout_measure(const struct skrull_plan *plan, size_t i_rank,
                          struct skrull_layout_limits *ret_limits, struct skrull_error *err)
{
    struct skrull_layout_limits limits;
    uint32_t n = i_rank < plan->n_ranks ? plan->ranks[i_rank].n_micro_batches : 1;

    memset(&limits, 0, sizeof(limits));
    for (uint32_t i = 0; i < n; i++) {
        struct shape shape;
        int rc = shape_read(plan, i_rank, i, &shape, err);

        if (rc == 0) {
            rc = add_shape(&limits, &shape, err);
        }
        if (rc < 0) {
            return rc;
        }
    }
    *ret_limits = limits;
    return 0;
}

/*
 * FLOP functions: how much one layer computes for a sequence of a length. Pure; + and * alone.
 */
#include "cost/flops.h"

#include <stddef.h>

struct flops_row {
    enum skrull_flops flops;
    const char *name;
    flops_fn fn; /* NULL: not built yet */
};

#define FLOPS(word, text, function) {.flops = (word), .name = (text), .fn = (function)},
#define PLANNED_FLOPS(word, text) {.flops = (word), .name = (text)},
static const struct flops_row rows[] = {
#include "cost/flops.def"
};
#undef FLOPS
#undef PLANNED_FLOPS

int flops_find(enum skrull_flops flops, flops_fn *ret_fn, struct skrull_error *err)
{
    const enum skrull_flops wanted = flops == 0 ? SKRULL_FLOPS_PAPER : flops;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].flops != wanted) {
            continue;
        }
        if (!rows[i].fn) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "model.flops: %s is not built yet, use paper", rows[i].name);
        }
        *ret_fn = rows[i].fn;
        return 0;
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "model.flops: unknown value %d, use paper", (int)flops);
}

double flops_paper(const struct cost_shape *shape, double length)
{
    const double h = shape->hidden;
    const double linear = 20.0 * h * h + 4.0 * h * shape->kv_hidden;

    return (linear + 4.0 * h * length) * length;
}

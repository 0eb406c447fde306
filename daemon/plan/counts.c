/*
 * Counts of micro-batches, the same arithmetic for every policy. Trainers ask for an exact count
 * (gradient accumulation is fixed), for multiples (groups of virtual pipeline stages) and for a
 * minimum (pipeline stages); dummies fill up, and as every rank has the same count they must be
 * run.
 */
#include "plan/counts.h"

#include "plan/options.h"

/* Is there an option that only equal counts can keep? */
static int check_needs_equal(const struct skrull_planner_options *options, struct skrull_error *err)
{
    const bool is_multiple = options->micro_batch_multiple > 1;

    if (options->equal_micro_batches || (!is_multiple && options->micro_batch_min <= 1)) {
        return 0;
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "batch.%s: %u needs equal counts, batch.equal_micro_batches is false: "
                            "set that to true, or this to 1",
                            is_multiple ? "micro_batch_multiple" : "micro_batch_min",
                            is_multiple ? options->micro_batch_multiple : options->micro_batch_min);
}

static int check_exact(const struct skrull_planner_options *options, struct skrull_error *err)
{
    const uint32_t exact = options->micro_batches;

    if (exact % options->micro_batch_multiple != 0) {
        return skrull_error_set(
            err, SKRULL_ERR_INVALID_ARGUMENT,
            "batch.micro_batches: %u is no multiple of batch.micro_batch_multiple: %u", exact,
            options->micro_batch_multiple);
    }
    if (exact > 0 && exact < options->micro_batch_min) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "batch.micro_batches: %u is less than batch.micro_batch_min: %u",
                                exact, options->micro_batch_min);
    }
    return 0;
}

/* A count that every plan has must leave room for the plan. */
static int check_size(const struct skrull_planner_options *options, struct skrull_error *err)
{
    const uint64_t ranks = (uint64_t)options->dp * options->cp;
    const uint64_t most = PLANNER_MAX_BYTES / 2 / sizeof(struct skrull_micro_batch) / ranks;
    const struct {
        const char *name;
        uint32_t value;
    } counts[] = {
        {"micro_batches", options->micro_batches},
        {"micro_batch_multiple", options->micro_batch_multiple},
        {"micro_batch_min", options->micro_batch_min},
    };

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        if (counts[i].value > most) {
            return skrull_error_set(
                err, SKRULL_ERR_INVALID_ARGUMENT,
                "batch.%s: a plan holds at most %llu micro-batches on each of %llu ranks, not %u",
                counts[i].name, (unsigned long long)most, (unsigned long long)ranks,
                counts[i].value);
        }
    }
    return 0;
}

int counts_check_options(const struct skrull_planner_options *options, struct skrull_error *err)
{
    int rc;

    rc = check_needs_equal(options, err);
    rc = rc ? rc : check_exact(options, err);
    return rc ? rc : check_size(options, err);
}

uint32_t counts_most(const struct placement *placements, uint32_t n)
{
    uint32_t most = 0;

    for (uint32_t k = 0; k < n; k++) {
        most = placements[k].micro_batch >= most ? placements[k].micro_batch + 1 : most;
    }
    return most;
}

uint32_t counts_equal(const struct skrull_planner_options *options, uint32_t most)
{
    const uint32_t multiple = options->micro_batch_multiple;
    const uint32_t least = most > options->micro_batch_min ? most : options->micro_batch_min;

    if (options->micro_batches > 0) { /* no rank loses work, whatever was checked before */
        return options->micro_batches > most ? options->micro_batches : most;
    }
    /* Neither passes 2^31: of placements at most PLANNER_MAX_SEQUENCES, of options check_size. */
    return (least + multiple - 1) / multiple * multiple;
}

/*
 * Written from model.md alone, in doubles, so that it shares no code with the planner.
 */
#include "bench/checker_bound.h"

#include <math.h>
#include <string.h>

struct model {
    double hidden, kv_hidden, layers;
};

static struct model find_model(const char *preset)
{
    if (strcmp(preset, "qwen2.5-0.5b") == 0) {
        return (struct model){896, 128, 24};
    }
    return (struct model){3584, 512, 28};
}

static double comp_s(const struct model *model, double length, double degree)
{
    const double h = model->hidden;
    const double flops = (20 * h * h + 4 * h * model->kv_hidden + 4 * h * length) * length;

    return 3 * model->layers * flops / (989e12 * 0.60) * (degree > 1 ? 1.2 / degree : 1);
}

static double exchange_s(const struct model *model, double tokens)
{
    return 3 * model->layers * (30e-6 + 6.3e-12 * 4 * model->kv_hidden * tokens);
}

/* The next size of the mode after `size`; 0: none. Elastic: the grids here are powers of two. */
static uint32_t next_size(const struct skrull_planner_options *options, uint32_t size)
{
    if (options->cp_mode == SKRULL_CP_MODE_ELASTIC) {
        return size < options->dp * options->cp ? size * 2 : 0;
    }
    return size < options->cp ? options->cp : 0;
}

double checker_bound_ms(const char *preset, const struct skrull_planner_options *options,
                        const struct skrull_sequence *sequences, size_t n)
{
    const struct model model = find_model(preset);
    const double ranks = (double)options->dp * options->cp, bucket = options->bucket_tokens;
    const double fixed = 340e-6 * model.layers;
    double work = 0, longest = 0, tokens = 0, fill, bound;

    for (size_t k = 0; k < n; k++) {
        const double length = sequences[k].length;
        double alone = HUGE_VAL, least = HUGE_VAL;

        for (uint32_t d = 1; d > 0; d = next_size(options, d)) {
            if (skrull_slot_tokens(sequences[k].length, d, 1, SKRULL_SHARD_ZIGZAG) <=
                options->bucket_tokens) {
                const double comp = comp_s(&model, length, d);

                alone = fmin(alone, comp + (d > 1 ? exchange_s(&model, length) : 0));
                least = fmin(least, comp * d);
            }
        }
        longest = fmax(longest, alone);
        work += least / ranks;
        tokens += length;
    }
    fill = tokens / (bucket * ranks);
    bound = fmax(work + fixed * fmax(1, fill), longest + fixed);
    return 1e3 * fmax(bound, ceil(fill) * fixed);
}

/* Plans as tables. Times are shown in milliseconds, gaps in hundredths of a percent, by integers.
 */
#include "plan_print.h"

#include <inttypes.h>
#include <stdio.h>

#include "codec_text.h"
#include "table.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *plan_ms(int64_t ns, char text[PLAN_MS_SIZE])
{
    int64_t us = ns < 0 ? 0 : ns / 1000 + (ns % 1000 >= 500);

    (void)snprintf(text, PLAN_MS_SIZE, "%" PRId64 ".%03" PRId64, us / 1000, us % 1000);
    return text;
}

const char *plan_gap(int64_t iteration_ns, int64_t bound_ns, char text[PLAN_MS_SIZE])
{
    int64_t over = iteration_ns - bound_ns, parts;

    if (bound_ns <= 0 || over < 0 || over > INT64_MAX / 10000) {
        (void)snprintf(text, PLAN_MS_SIZE, "-");
        return text;
    }
    parts = over * 10000 / bound_ns; /* of 10,000; rounded down */
    (void)snprintf(text, PLAN_MS_SIZE, "%" PRId64 ".%02" PRId64 " %%", parts / 100, parts % 100);
    return text;
}

void plan_print_head(const struct skrull_plan *plan)
{
    char digest[SKRULL_DIGEST_HEX_SIZE], iteration[PLAN_MS_SIZE], bound[PLAN_MS_SIZE];
    char gap[PLAN_MS_SIZE];

    skrull_digest_to_hex(plan->digest, digest);
    (void)printf("job %s  step %" PRIu64 "  epoch %" PRIu64 "  policy %s  dp %" PRIu32
                 "  cp %" PRIu32 "  digest %s\n",
                 plan->job[0] ? plan->job : "-", plan->step, plan->epoch, plan->policy, plan->dp,
                 plan->cp, digest);
    (void)printf("sequences %" PRIu64 "  tokens %" PRIu64 "  loss tokens %" PRIu64
                 "  iteration %s ms  bound %s ms  gap %s\n",
                 plan->totals.sequences, plan->totals.tokens, plan->totals.loss_tokens,
                 plan_ms(plan->estimate.iteration_ns, iteration),
                 plan_ms(plan->estimate.bound_ns, bound),
                 plan_gap(plan->estimate.iteration_ns, plan->estimate.bound_ns, gap));
}

static void add_rank(struct table *table, const struct skrull_plan *plan,
                     const struct skrull_rank *rank)
{
    uint64_t tokens = 0, padded = 0, n_segments = 0;

    for (uint32_t i = 0; i < rank->n_micro_batches; i++) {
        const struct skrull_micro_batch *micro_batch =
            &plan->micro_batches[rank->first_micro_batch + i];

        tokens += micro_batch->tokens;
        padded += micro_batch->padded_tokens;
        n_segments += micro_batch->n_segments;
    }
    table_add(table, "%" PRIu32, rank->data_rank);
    table_add(table, "%" PRIu32, rank->n_micro_batches);
    table_add(table, "%" PRIu64, n_segments);
    table_add(table, "%" PRIu64, tokens);
    table_add(table, "%" PRIu64, padded);
    table_add_ms(table, rank->estimate.comp_ns);
    table_add_ms(table, rank->estimate.comm_ns);
    table_add_ms(table, rank->estimate.idle_ns);
}

static int print_ranks(const struct skrull_plan *plan)
{
    static const struct table_column columns[] = {
        {"rank", true},          {"micro_batches", true}, {"segments", true}, {"tokens", true},
        {"padded_tokens", true}, {"comp_ms", true},       {"comm_ms", true},  {"idle_ms", true},
    };
    struct table table;
    int r;

    table_init(&table, columns, COUNT(columns));
    for (size_t i = 0; i < plan->n_ranks; i++) {
        add_rank(&table, plan, &plan->ranks[i]);
    }
    r = table_print(&table, false);
    table_deinit(&table);
    return r;
}

static void add_micro_batch(struct table *table, const struct skrull_plan *plan,
                            const struct skrull_rank *rank, uint32_t i)
{
    const struct skrull_micro_batch *micro_batch =
        &plan->micro_batches[rank->first_micro_batch + i];
    const struct skrull_segment *segments = &plan->segments[micro_batch->first_segment];
    uint32_t n_distributed = 0;

    for (uint32_t k = 0; k < micro_batch->n_segments; k++) {
        n_distributed += segments[k].group_size > 1;
    }
    table_add(table, "%" PRIu32, rank->data_rank);
    table_add(table, "%" PRIu32, i);
    table_add(table, "%" PRIu32, micro_batch->n_segments);
    table_add(table, "%" PRIu32, n_distributed);
    table_add(table, "%" PRIu64, micro_batch->tokens);
    table_add(table, "%" PRIu64, micro_batch->padded_tokens);
    table_add(table, "%s", micro_batch->dummy ? "true" : "false");
    table_add(table, "%" PRId64, micro_batch->estimate.comp_ns);
    table_add(table, "%" PRId64, micro_batch->estimate.comm_ns);
    table_add(table, "%" PRId64, micro_batch->estimate.idle_ns);
}

static int print_micro_batches(const struct skrull_plan *plan, bool is_csv)
{
    static const struct table_column columns[] = {
        {"rank", true},    {"micro_batch", true},   {"segments", true}, {"distributed", true},
        {"tokens", true},  {"padded_tokens", true}, {"dummy", false},   {"comp_ns", true},
        {"comm_ns", true}, {"idle_ns", true},
    };
    struct table table;
    int r;

    table_init(&table, columns, COUNT(columns));
    for (size_t i = 0; i < plan->n_ranks; i++) {
        for (uint32_t k = 0; k < plan->ranks[i].n_micro_batches; k++) {
            add_micro_batch(&table, plan, &plan->ranks[i], k);
        }
    }
    r = table_print(&table, is_csv);
    table_deinit(&table);
    return r;
}

static int no_memory(const struct ctl *ctl)
{
    struct skrull_error err;

    (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a table");
    return ctl_fail(ctl, &err);
}

int plan_print(const struct ctl *ctl, const struct skrull_plan *plan)
{
    struct skrull_error err;
    char *text = NULL;
    int r = 0;

    switch (ctl->format) {
    case CTL_JSON:
        r = codec_text_plan(plan, true, &text, &err);
        return ctl_print_json(ctl, r, text, &err);
    case CTL_TABLE:
        plan_print_head(plan);
        r = print_ranks(plan);
        break;
    case CTL_WIDE:
        plan_print_head(plan);
        r = print_micro_batches(plan, false);
        break;
    case CTL_CSV:
        r = print_micro_batches(plan, true);
        break;
    }
    return r < 0 ? no_memory(ctl) : CTL_DONE;
}

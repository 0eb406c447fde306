/* compare: the same batches by several policies, in this process. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skrull/planner.h>

#include "cleanup.h"
#include "cmd.h"
#include "codec_text.h"
#include "comparison.h"
#include "ctl.h"
#include "job/job.h"
#include "plan_source.h"
#include "table.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MAX_POLICIES 32
#define DEFAULT_STEPS 100
#define MAX_STEPS ((uint64_t)1 << 24)

/* The policies of one comparison; the last place is uniform's, measured also where it is not asked
 * for. */
struct comparison {
    const char *policies[MAX_POLICIES + 1]; /* names of skrull_planner_policies */
    struct comparison_times times[MAX_POLICIES + 1];
    struct codec_text_comparison_row rows[MAX_POLICIES];
    size_t n_policies;
};

/* The built policy of that name ([len] bytes); NULL: unknown. */
static const char *find_policy(const char *name, size_t len)
{
    for (const char *const *policy = skrull_planner_policies(); *policy; policy++) {
        if (strlen(*policy) == len && memcmp(*policy, name, len) == 0) {
            return *policy;
        }
    }
    return NULL;
}

/* A name that is no built policy: still to come, which is said as of a job's, or unknown. */
static int refuse_policy(const struct ctl *ctl, const char *name, size_t len)
{
    char text[64];
    const struct skrull_planner_options options = {
        .dp = 1, .cp = 1, .bucket_tokens = 2, .policy = text};
    struct skrull_error err;

    (void)snprintf(text, sizeof(text), "%.*s", (int)(len < sizeof(text) ? len : sizeof(text) - 1),
                   name);
    if (text[0] && skrull_planner_check_options(&options, &err) < 0 &&
        strstr(err.message, "not built yet")) {
        return ctl_fail(ctl, &err);
    }
    return ctl_misuse(ctl, "--policies: unknown policy %s", text);
}

/* --policies, or all. Returns the exit status. */
static int take_policies(const struct ctl *ctl, struct comparison *comparison)
{
    const char *list = ctl_text(ctl, "--policies");

    for (const char *const *policy = skrull_planner_policies(); !list && *policy; policy++) {
        if (comparison->n_policies < MAX_POLICIES) {
            comparison->policies[comparison->n_policies++] = *policy;
        }
    }
    while (list) {
        size_t len = strcspn(list, ",");
        const char *policy = find_policy(list, len);

        if (!policy) {
            return refuse_policy(ctl, list, len);
        }
        if (comparison->n_policies == MAX_POLICIES) {
            return ctl_misuse(ctl, "--policies: more than %d", MAX_POLICIES);
        }
        comparison->policies[comparison->n_policies++] = policy;
        list = list[len] ? list + len + 1 : NULL;
    }
    return CTL_DONE;
}

/* Measures every policy and uniform, then makes the rows. */
static int measure(const struct job *job, const struct comparison_options *options,
                   struct comparison *comparison, struct skrull_error *err)
{
    const struct skrull_job *spec = job_spec(job);
    struct skrull_cost_options cost;
    size_t n = comparison->n_policies;
    struct skrull_cost_model *model;
    int64_t step_ns;
    int r;

    job_cost_options(spec, &cost);
    r = skrull_cost_model_new(&cost, &model, err);
    if (r < 0) {
        return r;
    }
    step_ns = skrull_cost_step_ns(model);
    skrull_cost_model_free(model);
    comparison->policies[n] = "uniform";
    for (size_t i = 0; i <= n; i++) {
        r = comparison_measure(job, options, comparison->policies[i], &comparison->times[i], err);
        if (r < 0) {
            return r;
        }
    }
    for (size_t i = 0; i < n; i++) {
        comparison_row(&comparison->times[i], &comparison->times[n], options->n_steps, step_ns,
                       &comparison->rows[i]);
    }
    return 0;
}

/* A ratio to uniform; there is none where uniform was refused. */
static void add_ratio(struct table *table, double ratio)
{
    if (ratio > 0.0) {
        table_add(table, "%.2f", ratio);
    } else {
        table_add(table, "-");
    }
}

static void add_exact_ratio(struct table *table, double ratio)
{
    if (ratio > 0.0) {
        table_add(table, "%.17g", ratio);
    } else {
        table_add(table, "%s", "");
    }
}

static void add_figures(struct table *table, const struct codec_text_comparison_row *row)
{
    table_add(table, "%s", row->policy);
    table_add_ms(table, row->mean_ns);
    table_add_ms(table, row->p50_ns);
    table_add_ms(table, row->p95_ns);
    add_ratio(table, row->speedup);
    add_ratio(table, row->speedup_with_step);
    table_add(table, "%.1f %%", row->gap * 100.0);
    table_add_ms(table, row->planning_ns);
}

/* A policy that was refused has no figures, but a reason in a last column, which is there for it
 * alone. */
static void add_refused(struct table *table, const struct codec_text_comparison_row *row)
{
    table_add(table, "%s", row->policy);
    for (size_t i = 2; i < table->n_columns; i++) {
        table_add(table, "-");
    }
    table_add(table, "refused: %s", row->refused);
}

static int print_for_people(const struct codec_text_comparison_row *rows, size_t n_rows)
{
    static const struct table_column columns[] = {
        {"policy", false},    {"mean_ms", true},     {"p50_ms", true},
        {"p95_ms", true},     {"speedup", true},     {"with_step", true},
        {"over_bound", true}, {"planning_ms", true}, {"why", false},
    };
    bool has_reasons = false;
    struct table table;
    int r;

    for (size_t i = 0; i < n_rows; i++) {
        has_reasons |= rows[i].refused[0] != '\0';
    }
    table_init(&table, columns, COUNT(columns) - (has_reasons ? 0 : 1));
    for (size_t i = 0; i < n_rows; i++) {
        if (rows[i].refused[0]) {
            add_refused(&table, &rows[i]);
            continue;
        }
        add_figures(&table, &rows[i]);
        if (has_reasons) {
            table_add(&table, "%s", "");
        }
    }
    r = table_print(&table, false);
    table_deinit(&table);
    return r;
}

static int print_csv(const struct codec_text_comparison_row *rows, size_t n_rows)
{
    static const struct table_column columns[] = {
        {"policy", false}, {"mean_ns", true},     {"p50_ns", true},
        {"p95_ns", true},  {"speedup", true},     {"speedup_with_step", true},
        {"gap", true},     {"planning_ns", true}, {"refused", false},
    };
    struct table table;
    int r;

    table_init(&table, columns, COUNT(columns));
    for (size_t i = 0; i < n_rows; i++) {
        table_add(&table, "%s", rows[i].policy);
        table_add(&table, "%" PRId64, rows[i].mean_ns);
        table_add(&table, "%" PRId64, rows[i].p50_ns);
        table_add(&table, "%" PRId64, rows[i].p95_ns);
        add_exact_ratio(&table, rows[i].speedup);
        add_exact_ratio(&table, rows[i].speedup_with_step);
        table_add(&table, "%.17g", rows[i].gap);
        table_add(&table, "%" PRId64, rows[i].planning_ns);
        table_add(&table, "%s", rows[i].refused);
    }
    r = table_print(&table, true);
    table_deinit(&table);
    return r;
}

static int print_rows(const struct ctl *ctl, const struct comparison *comparison)
{
    struct skrull_error err;
    char *text = NULL;
    int r;

    if (ctl->format == CTL_JSON) {
        r = codec_text_comparison(comparison->rows, comparison->n_policies, true, &text, &err);
        return ctl_print_json(ctl, r, text, &err);
    }
    r = ctl->format == CTL_CSV ? print_csv(comparison->rows, comparison->n_policies)
                               : print_for_people(comparison->rows, comparison->n_policies);
    if (r < 0) {
        (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a table");
        return ctl_fail(ctl, &err);
    }
    return CTL_DONE;
}

static int compare_job(const struct ctl *ctl, const struct job *job, struct comparison *comparison)
{
    struct comparison_options options = {.is_barrier = ctl_has(ctl, "--barrier")};
    uint64_t n_all = job_spec(job)->info.steps;
    struct skrull_error err;
    int status = ctl_number(ctl, "--steps", MAX_STEPS,
                            n_all < DEFAULT_STEPS ? n_all : DEFAULT_STEPS, &options.n_steps);

    if (status != CTL_DONE) {
        return status;
    }
    if (options.n_steps == 0) {
        return ctl_misuse(ctl, "--steps: at least 1");
    }
    if (options.n_steps > n_all) {
        (void)skrull_error_set(&err, SKRULL_ERR_OUT_OF_RANGE,
                               "--steps: the job has %" PRIu64 " steps, %" PRIu64 " are asked for",
                               n_all, options.n_steps);
        return ctl_fail(ctl, &err);
    }
    if (measure(job, &options, comparison, &err) < 0) {
        return ctl_fail(ctl, &err);
    }
    return print_rows(ctl, comparison);
}

int cmd_compare(struct ctl *ctl)
{
    _cleanup_(cleanup_free) struct comparison *comparison = calloc(1, sizeof(*comparison));
    struct skrull_error err;
    struct job *job;
    int status;

    if (!comparison) {
        (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                               "out of memory for a comparison");
        return ctl_fail(ctl, &err);
    }
    status = take_policies(ctl, comparison);
    if (status == CTL_DONE) {
        status = plan_source_open_job(ctl, ctl_text(ctl, "-f"), &job);
    }
    if (status != CTL_DONE) {
        return status;
    }
    status = compare_job(ctl, job, comparison);
    for (size_t i = 0; i <= comparison->n_policies; i++) {
        comparison_times_deinit(&comparison->times[i]);
    }
    job_unref(job);
    return status;
}

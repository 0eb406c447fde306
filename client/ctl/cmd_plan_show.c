/* plan show: one line a data rank, over the plan's modelled time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <skrull/planner.h>

#include "arena.h"
#include "cmd.h"
#include "ctl.h"
#include "explain.h"
#include "job/job.h"
#include "job_file.h"
#include "plan_print.h"
#include "plan_source.h"
#include "terminal.h"
#include "timeline.h"

#define JOB_MAX_BYTES ((size_t)1 << 24)
#define MARGIN 20 /* columns beside the line: "rank 1234 |" and the busy share */

struct look {
    const char *text[N_TIMELINE_CELLS];
    const char *colour[N_TIMELINE_CELLS];
};

static const struct look utf8_look = {
    {"█", "▓", "─", "·"},
    {"\033[32m", "\033[36m", "\033[33m", "\033[2m"},
};
static const struct look ascii_look = {
    {"#", "=", "-", "."},
    {"\033[32m", "\033[36m", "\033[33m", "\033[2m"},
};

static void print_cells(const struct look *look, bool has_colour, const enum timeline_cell *cells,
                        size_t n_cells)
{
    for (size_t i = 0; i < n_cells; i++) {
        bool is_new = i == 0 || cells[i] != cells[i - 1];

        if (has_colour && is_new) {
            (void)printf("\033[0m%s", look->colour[cells[i]]);
        }
        (void)fputs(look->text[cells[i]], stdout);
    }
    if (has_colour) {
        (void)fputs("\033[0m", stdout);
    }
}

/* The part of the line's time in which the rank computes, in percent. */
static int busy_percent(const struct skrull_rank *rank, int64_t total_ns)
{
    int64_t comp = rank->estimate.comp_ns;

    if (total_ns <= 0 || comp <= 0 || comp > total_ns || comp > INT64_MAX / 100) {
        return comp >= total_ns && total_ns > 0 ? 100 : 0;
    }
    return (int)(comp * 100 / total_ns);
}

/* The line's length: the plan's time, or where it holds one rank only, that rank's. */
static int64_t total_of(const struct skrull_plan *plan)
{
    int64_t total = plan->estimate.iteration_ns;

    for (size_t i = 0; i < plan->n_ranks; i++) {
        if (plan->ranks[i].estimate.iteration_ns > total) {
            total = plan->ranks[i].estimate.iteration_ns;
        }
    }
    return total;
}

static void print_legend(const struct look *look, bool has_colour)
{
    static const enum timeline_cell order[] = {TIMELINE_COMP_EVEN, TIMELINE_COMP_ODD, TIMELINE_COMM,
                                               TIMELINE_IDLE};
    static const char *const words[] = {" ", " computes (micro-batches in turn)  ", " exchanges  ",
                                        " waits\n"};

    for (size_t i = 0; i < 4; i++) {
        print_cells(look, has_colour, &order[i], 1);
        (void)fputs(words[i], stdout);
    }
}

static int draw(const struct ctl *ctl, const struct skrull_plan *plan)
{
    const struct terminal terminal = terminal_of_stdout();
    const struct look *look = terminal.is_utf8 ? &utf8_look : &ascii_look;
    size_t n_cells = terminal.width - MARGIN;
    enum timeline_cell *cells = calloc(n_cells, sizeof(cells[0]));
    int64_t total = total_of(plan);
    struct skrull_error err;
    char text[PLAN_MS_SIZE];

    if (!cells) {
        (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                               "out of memory for a time line");
        return ctl_fail(ctl, &err);
    }
    plan_print_head(plan);
    for (size_t i = 0; i < plan->n_ranks; i++) {
        timeline_fill(plan, i, total, n_cells, cells);
        (void)printf("rank %4" PRIu32 " |", plan->ranks[i].data_rank);
        print_cells(look, terminal.has_colour, cells, n_cells);
        (void)printf("| %3d %%\n", busy_percent(&plan->ranks[i], total));
    }
    (void)printf("0 to %s ms; at the end of a line: how much of it the rank computes\n",
                 plan_ms(total, text));
    print_legend(look, terminal.has_colour);
    free(cells);
    return CTL_DONE;
}

/* NULL: it is not built here; then less is explained. */
static struct skrull_cost_model *model_of(const struct skrull_job *spec)
{
    struct skrull_cost_options options;
    struct skrull_cost_model *model = NULL;

    job_cost_options(spec, &options);
    (void)skrull_cost_model_new(&options, &model, NULL);
    return model;
}

/* The cost model of a job file's job. */
static int read_model(const struct ctl *ctl, const char *path, struct skrull_cost_model **ret_model)
{
    struct arena *arena = arena_new(JOB_MAX_BYTES);
    struct skrull_job *spec;
    struct skrull_error err;
    int r = arena ? job_file_read(arena, path, &spec, &err)
                  : skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");

    if (r == 0) {
        *ret_model = model_of(spec);
    }
    arena_free(arena);
    return r < 0 ? ctl_fail(ctl, &err) : CTL_DONE;
}

/* Of the job that --job or the daemon tells; NULL where there is neither. */
static int find_model(struct ctl *ctl, struct skrull_cost_model **ret_model)
{
    struct skrull_client *client;
    struct skrull_job *spec;
    struct skrull_error err;
    int status;

    *ret_model = NULL;
    if (ctl_has(ctl, "--job")) {
        return read_model(ctl, ctl_text(ctl, "--job"), ret_model);
    }
    if (ctl_has(ctl, "-f")) {
        return CTL_DONE;
    }
    status = ctl_connect(ctl, &client);
    if (status != CTL_DONE) {
        return status;
    }
    if (skrull_client_get_job(client, ctl->operands[0], &spec, &err) < 0) {
        return ctl_fail(ctl, &err);
    }
    *ret_model = model_of(spec);
    skrull_job_free(spec);
    return CTL_DONE;
}

/* Below the picture of a whole plan. */
static int explain(struct ctl *ctl, const struct skrull_plan *plan)
{
    struct skrull_cost_model *model;
    struct skrull_error err;
    int status, r;

    if (plan->n_ranks != (uint64_t)plan->dp * plan->cp) {
        return CTL_DONE;
    }
    status = find_model(ctl, &model);
    if (status != CTL_DONE) {
        return status;
    }
    r = explain_print(plan, model);
    skrull_cost_model_free(model);
    if (r < 0) {
        (void)skrull_error_set(&err, r, "out of memory for an explanation");
        return ctl_fail(ctl, &err);
    }
    return CTL_DONE;
}

int cmd_plan_show(struct ctl *ctl)
{
    struct skrull_plan *plan;
    int status = plan_source_either(ctl, &plan);

    if (status != CTL_DONE) {
        return status;
    }
    if (ctl->format == CTL_JSON || ctl->format == CTL_CSV) {
        status = plan_print(ctl, plan);
    } else {
        status = draw(ctl, plan);
        status = status == CTL_DONE ? explain(ctl, plan) : status;
    }
    skrull_plan_free(plan);
    return status;
}

/* Plans from files, from the daemon; jobs from files. */
#include "plan_source.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skrull/planner.h>

#include "arena.h"
#include "cleanup.h"
#include "codec_text.h"
#include "job/job.h"
#include "job_file.h"

#define JOB_BUDGET ((size_t)64 << 20)
#define MAX_PLAN_BYTES ((size_t)1 << 30)

static int errno_error(struct skrull_error *err, const char *path)
{
    int code = errno == ENOENT || errno == ENOTDIR ? SKRULL_ERR_NOT_FOUND : SKRULL_ERR_UNKNOWN;

    return skrull_error_set(err, code, "%s: %s", path, strerror(errno));
}

/* All of a stream; malloc'd. */
static int read_all(FILE *file, const char *path, char **ret_text, size_t *ret_len,
                    struct skrull_error *err)
{
    size_t len = 0, capacity = 1 << 16;
    char *text = malloc(capacity);

    while (text) {
        len += fread(text + len, 1, capacity - len, file);
        if (len < capacity) {
            break;
        }
        if (capacity >= MAX_PLAN_BYTES) {
            free(text);
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "%s: longer than %zu bytes, the limit of a plan", path,
                                    MAX_PLAN_BYTES);
        }
        capacity *= 2;
        char *more = realloc(text, capacity);
        if (!more) {
            free(text);
        }
        text = more;
    }
    if (!text) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "%s: out of memory", path);
    }
    if (ferror(file)) {
        free(text);
        return errno_error(err, path);
    }
    *ret_text = text;
    *ret_len = len;
    return 0;
}

static int read_plan(const char *path, struct skrull_plan **ret_plan, struct skrull_error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    _cleanup_(cleanup_free) char *text = NULL;
    FILE *file = is_stdin ? stdin : fopen(path, "re");
    size_t len = 0;
    int r;

    if (!file) {
        return errno_error(err, path);
    }
    r = read_all(file, path, &text, &len, err);
    if (!is_stdin) {
        (void)fclose(file);
    }
    if (r == 0) {
        r = codec_text_plan_parse(text, len, ret_plan, err);
        r = r < 0 ? skrull_error_prefix(err, r, "%s", path) : r;
    }
    return r;
}

int plan_source_read(const struct ctl *ctl, const char *path, struct skrull_plan **ret_plan)
{
    struct skrull_error err;

    return read_plan(path, ret_plan, &err) < 0 ? ctl_fail(ctl, &err) : CTL_DONE;
}

/* Every --rank. */
static int take_ranks(const struct ctl *ctl, uint32_t ranks[CTL_MAX_VALUES], size_t *ret_n_ranks)
{
    *ret_n_ranks = 0;
    for (size_t i = 0; i < ctl->n_values; i++) {
        uint64_t rank;

        if (strcmp(ctl->values[i].option->name, "--rank") != 0) {
            continue;
        }
        if (!ctl_parse_number(ctl->values[i].text, UINT32_MAX, &rank)) {
            return ctl_misuse(ctl, "--rank: %.40s is not a data rank", ctl->values[i].text);
        }
        ranks[(*ret_n_ranks)++] = (uint32_t)rank;
    }
    return CTL_DONE;
}

int plan_source_fetch(struct ctl *ctl, struct skrull_plan **ret_plan)
{
    uint32_t ranks[CTL_MAX_VALUES];
    struct skrull_client *client;
    struct skrull_error err;
    size_t n_ranks;
    uint64_t step;
    int status = ctl_number(ctl, "--step", UINT64_MAX, 0, &step);

    if (status == CTL_DONE) {
        status = take_ranks(ctl, ranks, &n_ranks);
    }
    if (status == CTL_DONE) {
        status = ctl_connect(ctl, &client);
    }
    if (status != CTL_DONE) {
        return status;
    }
    if (skrull_client_get_plan(client, ctl->operands[0], step, ranks, n_ranks, ret_plan, &err) <
        0) {
        return ctl_fail(ctl, &err);
    }
    return CTL_DONE;
}

int plan_source_either(struct ctl *ctl, struct skrull_plan **ret_plan)
{
    const char *path = ctl_text(ctl, "-f");
    bool is_daemons = ctl->n_operands > 0;

    if (path && (is_daemons || ctl_has(ctl, "--step"))) {
        return ctl_misuse(ctl, "either -f or JOB with --step");
    }
    if (path) {
        return plan_source_read(ctl, path, ret_plan);
    }
    if (!is_daemons || !ctl_has(ctl, "--step")) {
        return ctl_misuse(ctl, "-f PLAN.json, or JOB with --step N, is required");
    }
    return plan_source_fetch(ctl, ret_plan);
}

/* Opens with `folder` as the root of relative paths; absolute paths may lie anywhere: it is the
 * user's own machine. */
static int open_at(const struct skrull_job *spec, const char *folder, struct job **ret_job,
                   struct skrull_error *err)
{
    _cleanup_(cleanup_free) char *root = realpath(folder, NULL);
    const char *const paths[] = {root, "/"};
    const struct job_roots roots = {.paths = paths, .n_paths = 2};

    if (!root) {
        return errno_error(err, folder);
    }
    return job_open(spec, &roots, ret_job, err);
}

/* What needs the planner's tables: names of policies, presets, profiles, and the set of sizes. */
static int check_settings(const struct skrull_job *spec, struct skrull_error *err)
{
    struct skrull_planner_options options;
    struct skrull_cost_options cost;
    struct skrull_cost_model *model;
    int r;

    job_planner_options(spec, &options);
    job_cost_options(spec, &cost);
    r = skrull_planner_check_options(&options, err);
    r = r < 0 ? r : skrull_cost_model_new(&cost, &model, err);
    if (r == 0) {
        skrull_cost_model_free(model);
    }
    return r;
}

int plan_source_read_job(const struct ctl *ctl, const char *path, struct plan_source_job *ret)
{
    struct plan_source_job job = {.arena = arena_new(JOB_BUDGET)};
    char *copy = job.arena ? arena_strdup(job.arena, path) : NULL; /* dirname writes into it */
    struct skrull_error err;
    int r;

    if (!copy) {
        r = skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a job");
    } else {
        r = job_file_read_checked(job.arena, path, check_settings, &job.spec, &err);
    }
    if (r < 0) {
        arena_free(job.arena);
        return ctl_fail(ctl, &err);
    }
    job.folder = dirname(copy);
    *ret = job;
    return CTL_DONE;
}

void plan_source_job_deinit(struct plan_source_job *job)
{
    arena_free(job->arena);
}

int plan_source_open_job(const struct ctl *ctl, const char *path, struct job **ret_job)
{
    struct plan_source_job file;
    struct skrull_error err;
    int r, status = plan_source_read_job(ctl, path, &file);

    if (status != CTL_DONE) {
        return status;
    }
    r = plan_source_open_spec(ctl, file.spec, file.folder, ret_job, &err);
    plan_source_job_deinit(&file);
    return r < 0 ? ctl_fail(ctl, &err) : CTL_DONE;
}

int plan_source_open_spec(const struct ctl *ctl, const struct skrull_job *spec, const char *folder,
                          struct job **ret_job, struct skrull_error *err)
{
    const char *given = ctl_text(ctl, "--data-root");

    return open_at(spec, given ? given : folder, ret_job, err);
}

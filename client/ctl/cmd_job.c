/* job create, list, get, update, delete: the daemon's jobs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "cmd.h"
#include "codec_text.h"
#include "ctl.h"
#include "job_file.h"
#include "plan_source.h"
#include "table.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MAX_MASK 64 /* what the daemon takes */
#define JOB_BUDGET ((size_t)64 << 20)

static const struct table_column columns[] = {
    {"name", false},     {"uid", false},      {"revision", true}, {"from_step", true},
    {"dp", true},        {"cp", true},        {"global", true},   {"bucket_tokens", true},
    {"policy", false},   {"sequences", true}, {"tokens", true},   {"dropped", true},
    {"truncated", true}, {"steps", true},
};

static void add_job(struct table *table, const struct skrull_job *job)
{
    const uint32_t n_revisions = job->info.n_revisions;

    table_add(table, "%s", job->name ? job->name : "");
    table_add(table, "%s", job->uid ? job->uid : "");
    table_add(table, "%" PRIu32, job->revision);
    table_add(table, "%" PRIu64, n_revisions ? job->info.revisions[n_revisions - 1].first_step : 0);
    table_add(table, "%" PRIu32, job->parallel.dp);
    table_add(table, "%" PRIu32, job->parallel.cp);
    table_add(table, "%" PRIu32, job->batch.global);
    table_add(table, "%" PRIu64, job->info.bucket_tokens);
    table_add(table, "%s", job->policy ? job->policy : "");
    table_add(table, "%" PRIu64, job->info.sequences);
    table_add(table, "%" PRIu64, job->info.tokens);
    table_add(table, "%" PRIu64, job->info.dropped);
    table_add(table, "%" PRIu64, job->info.truncated);
    table_add(table, "%" PRIu64, job->info.steps);
}

static int out_of_memory(const struct ctl *ctl)
{
    struct skrull_error err;

    (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a table");
    return ctl_fail(ctl, &err);
}

/* One job: as a row of the list in CSV, else a line a field. */
static int print_job(const struct ctl *ctl, const struct skrull_job *job)
{
    struct skrull_error err;
    struct table table;
    char *text = NULL;
    int r;

    if (ctl->format == CTL_JSON) {
        r = codec_text_job(job, true, &text, &err);
        return ctl_print_json(ctl, r, text, &err);
    }
    table_init(&table, columns, COUNT(columns));
    add_job(&table, job);
    if (ctl->format == CTL_CSV) {
        r = table_print(&table, true);
    } else {
        r = table.is_broken ? -1 : 0;
        for (size_t i = 0; r == 0 && i < table.n_cells; i++) {
            (void)printf("%-13s  %s\n", columns[i].title, table.cells[i]);
        }
        for (uint32_t i = 0; r == 0 && i < job->n_data; i++) {
            (void)printf("data[%" PRIu32 "]%*s  %s\n", i, 6, "", job->data[i].index);
        }
    }
    table_deinit(&table);
    return r < 0 ? out_of_memory(ctl) : CTL_DONE;
}

int cmd_job_create(struct ctl *ctl)
{
    struct plan_source_job file;
    struct skrull_job *job = NULL;
    struct skrull_client *client;
    struct skrull_error err;
    int status = plan_source_read_job(ctl, ctl_text(ctl, "-f"), &file);

    if (status != CTL_DONE) {
        return status;
    }
    status = ctl_connect(ctl, &client);
    if (status == CTL_DONE) {
        int r =
            skrull_client_create_job(client, file.spec, ctl_text(ctl, "--request-id"), &job, &err);

        status = r < 0 ? ctl_fail(ctl, &err) : print_job(ctl, job);
    }
    skrull_job_free(job);
    plan_source_job_deinit(&file);
    return status;
}

int cmd_job_get(struct ctl *ctl)
{
    struct skrull_job *job = NULL;
    struct skrull_client *client;
    struct skrull_error err;
    int status = ctl_connect(ctl, &client);

    if (status != CTL_DONE) {
        return status;
    }
    if (skrull_client_get_job(client, ctl->operands[0], &job, &err) < 0) {
        return ctl_fail(ctl, &err);
    }
    status = print_job(ctl, job);
    skrull_job_free(job);
    return status;
}

/* Cuts `list` at its commas, in `arena`. Returns the exit status. */
static int take_mask(const struct ctl *ctl, struct arena *arena, const char *list,
                     struct skrull_update_options *options)
{
    const char **mask = ARENA_ARRAY(arena, const char *, MAX_MASK);
    char *text = list ? arena_strdup(arena, list) : NULL;
    char *rest = text;

    if (!mask || (list && !text)) {
        return out_of_memory(ctl);
    }
    while (rest) {
        if (options->n_mask == MAX_MASK) {
            return ctl_misuse(ctl, "--mask: more than %d keys", MAX_MASK);
        }
        mask[options->n_mask++] = strsep(&rest, ",");
    }
    options->mask = mask;
    return CTL_DONE;
}

/* What the options say. Returns the exit status. */
static int take_update(const struct ctl *ctl, struct arena *arena,
                       struct skrull_update_options *options)
{
    uint64_t revision = 0;
    int status = ctl_number(ctl, "--from-step", UINT64_MAX, 0, &options->from_step);

    if (status == CTL_DONE) {
        status = ctl_number(ctl, "--expected-revision", UINT32_MAX, 0, &revision);
        options->expected_revision = (uint32_t)revision;
    }
    return status == CTL_DONE ? take_mask(ctl, arena, ctl_text(ctl, "--mask"), options) : status;
}

int cmd_job_update(struct ctl *ctl)
{
    struct arena *arena = arena_new(JOB_BUDGET);
    struct skrull_update_options options = {0};
    struct skrull_job *given, *job = NULL;
    struct skrull_client *client;
    struct skrull_error err;
    int r, status;

    if (!arena) {
        return out_of_memory(ctl);
    }
    status = take_update(ctl, arena, &options);
    if (status == CTL_DONE) {
        r = job_file_read_given(arena, ctl_text(ctl, "-f"), &given, &err);
        status = r < 0 ? ctl_fail(ctl, &err) : ctl_connect(ctl, &client);
    }
    if (status == CTL_DONE) {
        r = skrull_client_update_job(client, given, &options, &job, &err);
        status = r < 0 ? ctl_fail(ctl, &err) : print_job(ctl, job);
    }
    skrull_job_free(job);
    arena_free(arena);
    return status;
}

int cmd_job_delete(struct ctl *ctl)
{
    struct skrull_client *client;
    struct skrull_error err;
    int status = ctl_connect(ctl, &client);

    if (status != CTL_DONE) {
        return status;
    }
    if (skrull_client_delete_job(client, ctl->operands[0], &err) < 0) {
        return ctl_fail(ctl, &err);
    }
    if (ctl->format == CTL_JSON) {
        (void)puts("{}"); /* DeleteJobResponse */
    }
    return CTL_DONE;
}

static int add_row(void *arg, const struct skrull_job *job)
{
    struct table *table = arg;

    add_job(table, job);
    return table->is_broken;
}

static int list_table(const struct ctl *ctl, struct skrull_client *client)
{
    struct skrull_error err;
    struct table table;
    int r;

    table_init(&table, columns, COUNT(columns));
    if (skrull_client_list_jobs(client, add_row, &table, &err) < 0) {
        table_deinit(&table);
        return ctl_fail(ctl, &err);
    }
    r = table_print(&table, ctl->format == CTL_CSV);
    table_deinit(&table);
    return r < 0 ? out_of_memory(ctl) : CTL_DONE;
}

/* Jobs are borrowed during the walk, so each is printed when it comes, into one document. */
struct json_list {
    size_t n_jobs;
    int status; /* of the first that could not be printed */
    struct skrull_error err;
};

static int print_element(void *arg, const struct skrull_job *job)
{
    struct json_list *list = arg;
    char *text;

    list->status = codec_text_job(job, false, &text, &list->err);
    if (list->status < 0) {
        return 1;
    }
    (void)printf("%s%s", list->n_jobs++ ? ",\n    " : "{\n  \"jobs\": [\n    ", text);
    free(text);
    return 0;
}

static int list_json(const struct ctl *ctl, struct skrull_client *client)
{
    struct json_list list = {0};
    struct skrull_error err;

    if (skrull_client_list_jobs(client, print_element, &list, &err) < 0) {
        return ctl_fail(ctl, &err);
    }
    if (list.status < 0) {
        return ctl_fail(ctl, &list.err);
    }
    (void)puts(list.n_jobs ? "\n  ]\n}" : "{}");
    return CTL_DONE;
}

int cmd_job_list(struct ctl *ctl)
{
    struct skrull_client *client;
    int status = ctl_connect(ctl, &client);

    if (status != CTL_DONE) {
        return status;
    }
    return ctl->format == CTL_JSON ? list_json(ctl, client) : list_table(ctl, client);
}

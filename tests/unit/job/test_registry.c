/* The table of jobs: names, repeated requests, pages, and entries that outlive their deletion. */
#include "job/registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "arena.h"
#include "job/job.h"
#include "job/progress.h"
#include "job/revise.h"
#include "unit/job/job_folder.h"

static const uint32_t lengths[][2] = {{24, 100}, {0, 0}};

/* The folder's job under another name, opened. */
static struct job *open_named(struct job_folder *folder, const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/a.txt", folder->path);
    if (access(path, F_OK)) {
        job_folder_write(folder, "a.txt", lengths);
    }
    folder->spec.name = name;
    return job_folder_open(folder);
}

/* Creates a job as the daemon does; returns what reserving said. */
static int create(struct registry *registry, struct job_folder *folder, const char *name,
                  const char *request_id, struct skrull_error *err)
{
    struct job *job = open_named(folder, name);
    struct registry_entry *entry = NULL;
    int result = registry_reserve(registry, &folder->spec, request_id, &entry, err);

    if (result == 0) {
        assert_int_equal(registry_prepare(entry, job, err), 0);
        registry_publish(registry, entry);
    } else if (result > 0) {
        assert_string_equal(entry->request_id, request_id);
    }
    job_unref(job);
    return result;
}

static void test_registry_publish__makes_visible(void **state)
{
    struct job_folder *folder = *state;
    struct registry *registry = registry_new();
    struct job *job = open_named(folder, "one"), *found = NULL;
    struct registry_entry *entry = NULL, *other = NULL;
    struct skrull_error err = {0};

    assert_int_equal(registry_reserve(registry, &folder->spec, "", &entry, NULL), 0);
    assert_int_equal(registry_find(registry, "one", &other, &err), SKRULL_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "one"));
    assert_int_equal(registry_count(registry), 0);
    assert_int_equal(registry_prepare(entry, job, NULL), 0);
    assert_int_equal(registry_count(registry), 0);
    registry_publish(registry, entry);
    assert_int_equal(registry_find(registry, "one", &other, NULL), 0);
    assert_ptr_equal(other, entry);
    assert_int_equal(registry_entry_job(entry, &found, NULL), 0);
    assert_ptr_equal(found, job);
    assert_int_equal(entry->spec->info.steps, 3);
    assert_int_equal(progress_report(entry->progress, 7, 2, NULL), 0);
    assert_int_equal(progress_report(entry->progress, 8, 2, NULL), SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(progress_report(entry->progress, 7, 3, NULL), SKRULL_ERR_OUT_OF_RANGE);
    job_unref(job);
    registry_free(registry);
}

static void test_registry_reserve__name_taken(void **state)
{
    struct job_folder *folder = *state;
    struct registry *registry = registry_new();
    struct skrull_error err = {0};

    assert_int_equal(create(registry, folder, "one", "", &err), 0);
    assert_int_equal(create(registry, folder, "one", "", &err), SKRULL_ERR_ALREADY_EXISTS);
    assert_non_null(strstr(err.message, "one"));
    assert_int_equal(create(registry, folder, "one", "another", &err), SKRULL_ERR_ALREADY_EXISTS);
    assert_int_equal(create(registry, folder, "on", "", &err), 0);
    registry_free(registry);
}

static void test_registry_reserve__repeated_request(void **state)
{
    struct job_folder *folder = *state;
    struct registry *registry = registry_new();
    struct registry_entry *entry = NULL;
    struct skrull_error err = {0};

    assert_int_equal(create(registry, folder, "one", "request", &err), 0);
    assert_int_equal(create(registry, folder, "one", "request", &err), REGISTRY_REPEATED);
    folder->spec.uid = NULL; /* the first one has its own by now */
    folder->spec.revision = 0;
    assert_int_equal(create(registry, folder, "one", "request", &err), REGISTRY_REPEATED);
    assert_int_equal(create(registry, folder, "two", "request", &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "request_id"));
    folder->spec.seed = 5;
    assert_int_equal(create(registry, folder, "one", "request", &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(registry_count(registry), 1);
    assert_int_equal(registry_find(registry, "one", &entry, NULL), 0);
    registry_remove(registry, entry);
    assert_int_equal(create(registry, folder, "one", "request", &err), 0);
    registry_free(registry);
}

static void test_registry_reserve__under_way(void **state)
{
    struct job_folder *folder = *state;
    struct registry *registry = registry_new();
    struct registry_entry *entry = NULL, *other = NULL;
    struct skrull_error err = {0};
    const struct skrull_job *spec = job_folder_spec(folder);

    assert_int_equal(registry_reserve(registry, spec, "request", &entry, NULL), 0);
    assert_int_equal(registry_reserve(registry, spec, "request", &other, &err), SKRULL_ERR_ABORTED);
    assert_non_null(strstr(err.message, "try again"));
    assert_int_equal(registry_reserve(registry, spec, "", &other, &err), SKRULL_ERR_ABORTED);
    folder->spec.seed = 1;
    assert_int_equal(registry_reserve(registry, spec, "request", &other, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_null(other);
    registry_cancel(registry, entry);
    assert_int_equal(registry_reserve(registry, spec, "request", &entry, NULL), 0);
    registry_free(registry);
}

static void test_registry_load__broken_job_is_listed(void **state)
{
    struct job_folder *folder = *state;
    struct registry *registry = registry_new();
    struct registry_entry *entry = NULL;
    struct skrull_error why = {0}, err = {0};
    struct registry_saved saved = {.created = &folder->spec,
                                   .newest = &folder->spec,
                                   .request_id = "request",
                                   .given_out_below = 64};
    struct job *job = NULL;

    assert_int_equal(job_open(job_folder_spec(folder), &folder->roots, &job, &why),
                     SKRULL_ERR_NOT_FOUND);
    folder->spec.info.steps = 3; /* as the store has it */
    saved.why = &why;
    assert_int_equal(registry_load(registry, &saved, NULL, &entry, NULL), 0);
    assert_int_equal(registry_count(registry), 1);
    assert_int_equal(entry->given_out_below, 64);
    assert_int_equal(registry_entry_job(entry, &job, &err), SKRULL_ERR_FAILED_PRECONDITION);
    assert_non_null(strstr(err.message, why.message));
    assert_null(job);
    assert_null(entry->progress);
    assert_int_equal(entry->spec->info.steps, 3);
    folder->spec.info.steps = 0;
    assert_int_equal(create(registry, folder, "job", "other", &err), SKRULL_ERR_ALREADY_EXISTS);
    assert_int_equal(create(registry, folder, "job", "request", &err), REGISTRY_REPEATED);
    registry_free(registry);
}

static void test_registry_load__opened_job(void **state)
{
    struct job_folder *folder = *state;
    struct registry *registry = registry_new();
    struct registry_entry *entry = NULL, *other = NULL;
    struct job *job = open_named(folder, "one");
    struct registry_saved saved = {.created = job_spec(job),
                                   .newest = job_spec(job),
                                   .request_id = "r",
                                   .given_out_below = 128};

    assert_int_equal(registry_load(registry, &saved, job, &entry, NULL), 0);
    assert_int_equal(entry->given_out_below, 128);
    assert_ptr_equal(entry->spec, job_spec(job));
    assert_string_equal(entry->name, "one");
    assert_string_equal(entry->uid, job_spec(job)->uid);
    saved.request_id = "s";
    assert_int_equal(registry_load(registry, &saved, job, &other, NULL), SKRULL_ERR_ALREADY_EXISTS);
    job_unref(job);
    registry_free(registry);
}

/* The request that created a job is still known by what it asked for, and the progress goes on. */
static void test_registry_revise__swaps_the_job(void **state)
{
    struct job_folder *folder = *state;
    struct registry *registry = registry_new();
    struct registry_entry *entry = NULL, *other = NULL;
    struct job *job = open_named(folder, "one"), *revised = NULL;
    struct progress *progress = NULL;
    struct arena *arena = arena_new(1 << 16);
    const struct skrull_job update = {.parallel.dp = 3};
    const struct revise_request request = {.job = &update, .floor = 2};
    struct skrull_job *spec = NULL;
    uint32_t rank;

    assert_int_equal(registry_reserve(registry, &folder->spec, "r", &entry, NULL), 0);
    assert_int_equal(registry_prepare(entry, job, NULL), 0);
    registry_publish(registry, entry);
    for (rank = 0; rank < 8; rank++) {
        assert_int_equal(progress_report(entry->progress, rank, 0, NULL), 0);
    }
    assert_int_equal(revise_spec(arena, entry->spec, &request, &spec, NULL), 0);
    assert_int_equal(job_revise(job, spec, &revised, NULL), 0);
    assert_int_equal(registry_make_progress(revised, &progress, NULL), 0);
    registry_revise(entry, revised, progress);
    assert_ptr_equal(entry->spec, job_spec(revised));
    assert_int_equal(entry->spec->revision, 2);
    assert_int_equal(progress_next_step(entry->progress), 1);
    assert_int_equal(progress_report(entry->progress, 8, 1, NULL), SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(progress_report(entry->progress, 11, 2, NULL), 0);
    assert_string_equal(entry->name, "one");
    assert_int_equal(registry_reserve(registry, &folder->spec, "r", &other, NULL),
                     REGISTRY_REPEATED);
    assert_ptr_equal(other, entry);
    arena_free(arena);
    job_unref(revised);
    job_unref(job);
    registry_free(registry);
}

static void test_registry_remove__entry_stays_for_its_holders(void **state)
{
    struct job_folder *folder = *state;
    struct registry *registry = registry_new();
    struct registry_entry *entry = NULL, *other = NULL;
    struct skrull_error err = {0};
    struct skrull_plan *plan = NULL;
    struct job *job = NULL;

    assert_int_equal(create(registry, folder, "one", "", NULL), 0);
    assert_int_equal(registry_find(registry, "one", &entry, NULL), 0);
    (void)registry_entry_ref(entry);
    registry_remove(registry, entry);
    assert_true(entry->is_deleted);
    assert_int_equal(registry_find(registry, "one", &other, NULL), SKRULL_ERR_NOT_FOUND);
    assert_int_equal(create(registry, folder, "one", "", NULL), 0); /* another job of that name */
    registry_free(registry);
    assert_string_equal(entry->spec->name, "one");
    assert_int_equal(job_plan(entry->job, 0, &plan, NULL, NULL), 0);
    skrull_plan_free(plan);
    assert_int_equal(registry_entry_job(entry, &job, &err), SKRULL_ERR_NOT_FOUND);
    registry_entry_unref(entry);
}

static void test_registry_entry_check_uid__other(void **state)
{
    struct job_folder *folder = *state;
    struct registry *registry = registry_new();
    struct registry_entry *entry = NULL;
    struct skrull_error err = {0};

    assert_int_equal(create(registry, folder, "one", "", NULL), 0);
    assert_int_equal(registry_find(registry, "one", &entry, NULL), 0);
    assert_int_equal(registry_entry_check_uid(entry, "", NULL), 0);
    assert_int_equal(registry_entry_check_uid(entry, NULL, NULL), 0);
    assert_int_equal(registry_entry_check_uid(entry, "0123456789abcdef0123456789abcdef", NULL), 0);
    assert_int_equal(registry_entry_check_uid(entry, "0123456789abcdef0123456789abcdee", &err),
                     SKRULL_ERR_FAILED_PRECONDITION);
    assert_non_null(strstr(err.message, "0123456789abcdef0123456789abcdee"));
    registry_free(registry);
}

/* A table of `n` jobs j-0000, j-0001, ... that have no index. */
static struct registry *make_many(struct job_folder *folder, uint32_t n)
{
    const struct skrull_error why = {.code = SKRULL_ERR_NOT_FOUND, .message = "gone"};
    struct registry *registry = registry_new();
    struct registry_entry *entry = NULL;
    const struct registry_saved saved = {
        .created = &folder->spec, .newest = &folder->spec, .request_id = "", .why = &why};
    char name[16];
    uint32_t i;

    (void)job_folder_spec(folder);
    for (i = 0; i < n; i++) {
        /* Not in order: 7,919 is prime to every n used here. */
        (void)snprintf(name, sizeof(name), "j-%04u", (unsigned)((uint64_t)i * 7919 % n));
        folder->spec.name = name;
        assert_int_equal(registry_load(registry, &saved, NULL, &entry, NULL), 0);
    }
    return registry;
}

static void test_registry_page__walks_all_once(void **state)
{
    static const struct {
        uint64_t page_size;
        size_t n_pages, first_page;
    } cases[] = {{0, 13, 100},    {1, 1250, 1},          {100, 13, 100}, {1000, 2, 1000},
                 {5000, 2, 1000}, {UINT64_MAX, 2, 1000}, {625, 2, 625}};
    struct registry *registry = make_many(*state, 1250);
    struct registry_page page;
    char token[64], name[16];
    size_t i, j, n_pages, n_jobs;

    for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        token[0] = '\0';
        n_pages = n_jobs = 0;
        do {
            assert_int_equal(registry_page(registry, cases[i].page_size, token, &page, NULL), 0);
            assert_true(n_pages || page.n == cases[i].first_page);
            for (j = 0; j < page.n; j++, n_jobs++) {
                (void)snprintf(name, sizeof(name), "j-%04zu", n_jobs);
                assert_string_equal(registry_at(registry, page.first + j)->spec->name, name);
            }
            (void)snprintf(token, sizeof(token), "%s", page.next_page_token);
            n_pages++;
        } while (*token);
        assert_int_equal(n_jobs, 1250);
        assert_int_equal(n_pages, cases[i].n_pages);
    }
    registry_free(registry);
}

/* As many jobs as the daemon takes: every page is found by a search, none by a walk. */
static void test_registry_page__at_the_limit_of_jobs(void **state)
{
    struct job_folder *folder = *state;
    const struct skrull_error why = {.code = SKRULL_ERR_NOT_FOUND, .message = "gone"};
    const struct registry_saved saved = {
        .created = &folder->spec, .newest = &folder->spec, .request_id = "", .why = &why};
    struct registry *registry = registry_new();
    struct registry_entry *entry = NULL;
    struct skrull_error err = {0};
    struct registry_page page;
    char name[16], token[64] = "";
    size_t n_jobs = 0;

    folder->spec.name = name;
    for (size_t i = 0; i < REGISTRY_MAX_JOBS; i++) {
        (void)snprintf(name, sizeof(name), "j-%06zu", i);
        assert_int_equal(registry_load(registry, &saved, NULL, &entry, NULL), 0);
    }
    (void)snprintf(name, sizeof(name), "one-more");
    assert_int_equal(registry_reserve(registry, &folder->spec, "r", &entry, &err),
                     SKRULL_ERR_RESOURCE_EXHAUSTED);
    assert_int_equal(err.reason, SKRULL_REASON_TOO_MANY_JOBS);
    assert_int_equal(err.limit, REGISTRY_MAX_JOBS);
    do {
        assert_int_equal(registry_page(registry, 1000000, token, &page, NULL), 0);
        assert_true(page.n <= 1000);
        (void)snprintf(name, sizeof(name), "j-%06zu", n_jobs);
        assert_string_equal(registry_at(registry, page.first)->name, name);
        n_jobs += page.n;
        (void)snprintf(token, sizeof(token), "%s", page.next_page_token);
    } while (*token);
    assert_int_equal(n_jobs, REGISTRY_MAX_JOBS);
    registry_free(registry);
}

static void test_registry_page__its_last_job_is_deleted(void **state)
{
    struct registry *registry = make_many(*state, 5);
    struct registry_entry *entry = NULL;
    struct registry_page page;
    char token[64];

    assert_int_equal(registry_page(registry, 2, "", &page, NULL), 0);
    (void)snprintf(token, sizeof(token), "%s", page.next_page_token);
    assert_string_equal(token, "j-0001");
    assert_int_equal(registry_find(registry, token, &entry, NULL), 0);
    registry_remove(registry, entry);
    assert_int_equal(registry_page(registry, 2, token, &page, NULL), 0);
    assert_int_equal(page.n, 2);
    assert_string_equal(registry_at(registry, page.first)->spec->name, "j-0002");
    registry_free(registry);
}

static void test_registry_page__bad_token(void **state)
{
    static const char *const tokens[] = {
        " ",    "-a",
        "a-",   "A",
        "a b",  "../a",
        "\xff", "a123456789012345678901234567890123456789012345678901234567890123456789"};
    struct registry *registry = make_many(*state, 3);
    struct skrull_error err;
    struct registry_page page;
    size_t i;

    for (i = 0; i < sizeof(tokens) / sizeof(*tokens); i++) {
        memset(&err, 0, sizeof(err));
        if (registry_page(registry, 0, tokens[i], &page, &err) != SKRULL_ERR_INVALID_ARGUMENT) {
            fail_msg("'%s' was taken", tokens[i]);
        }
        assert_non_null(strstr(err.message, "page_token"));
    }
    assert_int_equal(registry_page(registry, 0, "z", &page, NULL), 0);
    assert_int_equal(page.n, 0);
    registry_free(registry);
}

static void test_registry_free__null(void **state)
{
    (void)state;
    registry_free(NULL);
    registry_entry_unref(NULL);
}

#define WITH_FOLDER(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, job_folder_setup, job_folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_registry_publish__makes_visible),
        WITH_FOLDER(test_registry_reserve__name_taken),
        WITH_FOLDER(test_registry_reserve__repeated_request),
        WITH_FOLDER(test_registry_reserve__under_way),
        WITH_FOLDER(test_registry_load__broken_job_is_listed),
        WITH_FOLDER(test_registry_load__opened_job),
        WITH_FOLDER(test_registry_revise__swaps_the_job),
        WITH_FOLDER(test_registry_remove__entry_stays_for_its_holders),
        WITH_FOLDER(test_registry_entry_check_uid__other),
        WITH_FOLDER(test_registry_page__walks_all_once),
        WITH_FOLDER(test_registry_page__at_the_limit_of_jobs),
        WITH_FOLDER(test_registry_page__its_last_job_is_deleted),
        WITH_FOLDER(test_registry_page__bad_token),
        cmocka_unit_test(test_registry_free__null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

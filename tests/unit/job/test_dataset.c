/* A data set's file: noticed when it changes; its rows after truncation and dropping. */
#include "job/dataset.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "index/index.h"
#include "unit/job/job_folder.h"

static const uint32_t sixteen[][2] = {{8, 100}, {8, 200}, {0, 0}};
static const uint32_t others[][2] = {{8, 100}, {8, 201}, {0, 0}};
static const uint32_t fewer[][2] = {{8, 100}, {0, 0}};

static void in_folder(const struct job_folder *folder, const char *name, char ret_path[128])
{
    (void)snprintf(ret_path, 128, "%s/%s", folder->path, name);
}

/* Sets the time of last change, for file systems that count it coarsely. */
static void set_mtime(const struct job_folder *folder, const char *name, long seconds, long ns)
{
    const struct timespec times[2] = {{seconds, ns}, {seconds, ns}};
    char path[128];

    in_folder(folder, name, path);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void rewrite_in_place(const struct job_folder *folder)
{
    job_folder_write(folder, "a.txt", others); /* as long as before */
    set_mtime(folder, "a.txt", 1000, 1);
}

static void replace(const struct job_folder *folder)
{
    char from[128], to[128];

    job_folder_write(folder, "b.txt", sixteen);
    set_mtime(folder, "b.txt", 1000, 0);
    in_folder(folder, "b.txt", from);
    in_folder(folder, "a.txt", to);
    assert_int_equal(rename(from, to), 0);
}

static void cut_short(const struct job_folder *folder)
{
    job_folder_write(folder, "a.txt", fewer);
    set_mtime(folder, "a.txt", 1000, 0);
}

static void take_away(const struct job_folder *folder)
{
    char path[128];

    in_folder(folder, "a.txt", path);
    assert_int_equal(unlink(path), 0);
}

static void test_job_plan__index_changed(void **state)
{
    static const struct {
        void (*change)(const struct job_folder *folder);
        const char *says;
    } cases[] = {
        {rewrite_in_place, "was written to"},
        {replace, "was replaced"},
        {cut_short, "was written to"},
        {take_away, "is gone"},
    };
    struct job_folder *folder = *state;
    struct skrull_plan *plan = NULL;
    struct skrull_error err;
    struct job *job;
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        job_folder_write(folder, "a.txt", sixteen);
        set_mtime(folder, "a.txt", 1000, 0);
        job = job_folder_open(folder);
        assert_int_equal(job_plan(job, 0, &plan, NULL, NULL), 0);
        skrull_plan_free(plan);
        plan = NULL;
        cases[i].change(folder);
        memset(&err, 0, sizeof(err));
        assert_int_equal(job_plan(job, 1, &plan, NULL, &err), SKRULL_ERR_FAILED_PRECONDITION);
        if (!strstr(err.message, cases[i].says) || !strstr(err.message, "a.txt")) {
            fail_msg("row %zu: %s", i, err.message);
        }
        assert_null(plan);
        job_unref(job);
    }
}

/* A link that is turned to another file is another index, too. */
static void test_job_plan__link_turned(void **state)
{
    struct job_folder *folder = *state;
    struct skrull_plan *plan = NULL;
    char path[128];
    struct job *job;

    in_folder(folder, "current.txt", path);
    job_folder_write(folder, "a.txt", sixteen);
    job_folder_write(folder, "b.txt", sixteen);
    assert_int_equal(symlink("a.txt", path), 0);
    folder->data[0].index = "current.txt";
    job = job_folder_open(folder);
    assert_int_equal(job_plan(job, 0, &plan, NULL, NULL), 0);
    skrull_plan_free(plan);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("b.txt", path), 0);
    assert_int_equal(job_plan(job, 0, &plan, NULL, NULL), SKRULL_ERR_FAILED_PRECONDITION);
    job_unref(job);
}

/* The second root has the file; the first one's namesake folder does not matter. */
static void test_dataset_open__second_root(void **state)
{
    struct job_folder *folder = *state;
    const char *roots[2] = {"/usr/share", folder->path};
    struct skrull_plan *plan = NULL;
    char path[128];
    struct job *job;

    job_folder_write(folder, "a.txt", sixteen);
    folder->roots = (struct job_roots){roots, 2};
    job = job_folder_open(folder);
    assert_int_equal(job_plan(job, 0, &plan, NULL, NULL), 0);
    skrull_plan_free(plan);
    job_unref(job);
    in_folder(folder, "a.txt", path);
    folder->data[0].index = path; /* absolute, under a root */
    job = job_folder_open(folder);
    assert_int_equal(job_plan(job, 0, &plan, NULL, NULL), 0);
    skrull_plan_free(plan);
    job_unref(job);
}

/* An index that says how many tokens of each sequence count for the loss. */
static void write_with_loss(const struct job_folder *folder, const char *name)
{
    static const uint32_t lengths[] = {10, 20, 5000, 30};
    static const uint32_t loss_tokens[] = {1, 0, 2500, 30};
    const struct length_index idx = {
        .format = "skx",
        .lengths = lengths,
        .loss_tokens = loss_tokens,
        .count = 4,
        .tokens = 5060,
        .n_loss_tokens = 2531,
    };
    char path[128];

    in_folder(folder, name, path);
    assert_int_equal(index_write_skx(&idx, path, NULL), 0);
}

/* A mapped file that is cut short must not be read: that would end the process. */
static void test_job_plan__mapped_index_cut_short(void **state)
{
    struct job_folder *folder = *state;
    struct skrull_plan *plan = NULL, *other = NULL;
    char path[128];
    struct job *job;

    write_with_loss(folder, "a.skx");
    folder->data[0].index = "a.skx";
    folder->data[0].over_length = SKRULL_OVER_LENGTH_DROP;
    folder->spec.batch.global = 3;
    job = job_folder_open(folder);
    assert_int_equal(job_plan(job, 0, &plan, NULL, NULL), 0);
    in_folder(folder, "a.skx", path);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(job_plan(job, 0, &other, NULL, NULL), SKRULL_ERR_FAILED_PRECONDITION);
    assert_int_equal(job_check_plan(job, plan, NULL, NULL, NULL), SKRULL_ERR_FAILED_PRECONDITION);
    skrull_plan_free(plan);
    job_unref(job);
}

static void test_dataset_fit__truncation_and_loss_tokens(void **state)
{
    struct job_folder *folder = *state;
    struct skrull_plan *plan = NULL;
    struct job *job;

    write_with_loss(folder, "a.skx");
    folder->data[0].index = "a.skx";
    folder->spec.batch.global = 3;
    folder->data[0].over_length = SKRULL_OVER_LENGTH_TRUNCATE;
    job_folder_expect_refused(folder, SKRULL_ERR_INVALID_ARGUMENT, "truncate would cut 1");
    folder->data[0].over_length = SKRULL_OVER_LENGTH_DROP;
    job = job_folder_open(folder);
    assert_int_equal(job_plan(job, 0, &plan, NULL, NULL), 0);
    assert_int_equal(plan->totals.tokens, 60);
    assert_int_equal(plan->totals.loss_tokens, 31);
    skrull_plan_free(plan);
    job_unref(job);
    /* Nothing to cut: fine. */
    folder->data[0].over_length = SKRULL_OVER_LENGTH_TRUNCATE;
    folder->spec.batch.bucket_tokens = 1250;
    job = job_folder_open(folder);
    assert_int_equal(job_spec(job)->info.truncated, 0);
    job_unref(job);
}

static void test_dataset_length__kept_cut_and_dropped(void **state)
{
    static const uint32_t pairs[][2] = {{1, 10}, {1, 11},          {62, 5},
                                        {1, 12}, {1, 4294967295u}, {0, 0}};
    struct job_folder *folder = *state;
    struct skrull_dataset spec = {.index = "a.txt", .format = "auto"};
    struct dataset dataset;

    job_folder_write(folder, "a.txt", pairs);
    assert_int_equal(dataset_open(&spec, 0, &folder->roots, &dataset, NULL), 0);
    assert_int_equal(dataset_fit(&dataset, SKRULL_OVER_LENGTH_DROP, 10, "of a test", NULL), 0);
    assert_int_equal(dataset.n_kept, 63);
    assert_int_equal(dataset.n_dropped, 3);
    assert_int_equal(dataset_length(&dataset, 0), 10);
    assert_int_equal(dataset_length(&dataset, 1), 0);
    assert_int_equal(dataset_length(&dataset, 63), 5);
    assert_int_equal(dataset_length(&dataset, 64), 0);
    assert_int_equal(dataset_length(&dataset, 66), 0);
    assert_int_equal(dataset_length(&dataset, UINT64_MAX), 0);
    assert_int_equal(dataset.kept[0], ~UINT64_C(2));
    assert_int_equal(dataset.kept[1], 0);
    dataset_close(&dataset);
    assert_int_equal(dataset_open(&spec, 0, &folder->roots, &dataset, NULL), 0);
    assert_int_equal(dataset_fit(&dataset, SKRULL_OVER_LENGTH_TRUNCATE, 10, "of a test", NULL), 0);
    assert_int_equal(dataset.n_truncated, 3);
    assert_int_equal(dataset.tokens, 62 * 5 + 4 * 10);
    assert_int_equal(dataset.longest, 10);
    assert_int_equal(dataset_length(&dataset, 65), 10);
    assert_int_equal(dataset_loss_tokens(&dataset, 65), 10);
    dataset_close(&dataset);
    dataset_close(&dataset);
}

/* What a data set says of its column and unit reaches the index. */
static void test_dataset_open__column_and_unit(void **state)
{
    struct job_folder *folder = *state;
    struct skrull_dataset spec = {.index = "a.csv", .format = "auto", .column = "b+a"};
    struct dataset dataset;
    struct skrull_error err;
    char path[128];
    FILE *file;

    in_folder(folder, "a.csv", path);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs("a,b,length\n1,20,5\n2,30,6\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(dataset_open(&spec, 0, &folder->roots, &dataset, NULL), 0);
    assert_int_equal(dataset.idx->count, 2);
    assert_int_equal(dataset.idx->tokens, 53);
    dataset_close(&dataset);
    spec.column = NULL;
    assert_int_equal(dataset_open(&spec, 0, &folder->roots, &dataset, NULL), 0);
    assert_int_equal(dataset.idx->tokens, 11);
    dataset_close(&dataset);
    spec.unit = SKRULL_UNIT_DOCUMENT;
    assert_int_equal(dataset_open(&spec, 0, &folder->roots, &dataset, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "data[0].index: a.csv: unit document: csv knows"));
}

#define WITH_FOLDER(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, job_folder_setup, job_folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_job_plan__index_changed),
        WITH_FOLDER(test_job_plan__link_turned),
        WITH_FOLDER(test_dataset_open__second_root),
        WITH_FOLDER(test_job_plan__mapped_index_cut_short),
        WITH_FOLDER(test_dataset_fit__truncation_and_loss_tokens),
        WITH_FOLDER(test_dataset_length__kept_cut_and_dropped),
        WITH_FOLDER(test_dataset_open__column_and_unit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What job_check_plan finds beyond plan_check: a plan of another batch, step or job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "job/job.h"
#include "plan_check.h"
#include "unit/job/job_folder.h"

static const uint32_t same_lengths[][2] = {{64, 100}, {0, 0}};

/* Is there a fault that says it? */
struct search {
    const char *says;
    bool is_found;
};

static void search_fault(void *arg, const char *message)
{
    struct search *search = arg;

    search->is_found |= strstr(message, search->says) != NULL;
}

/* Opens a job over 64 equal sequences and plans step 2. */
static struct job *open_and_plan(struct job_folder *folder, struct skrull_plan **ret_plan)
{
    struct job *job;

    job_folder_write(folder, "a.txt", same_lengths);
    job = job_folder_open(folder);
    assert_int_equal(job_plan(job, 2, ret_plan, NULL, NULL), 0);
    return job;
}

static void expect_fault(const struct job *job, const struct skrull_plan *plan, const char *says)
{
    struct search search = {.says = says};
    struct skrull_error err = {0};

    assert_int_equal(job_check_plan(job, plan, search_fault, &search, &err), PLAN_CHECK_UNSOUND);
    if (!search.is_found) {
        fail_msg("no fault says '%s'", says);
    }
}

static void test_job_check_plan__another_row(void **state)
{
    struct skrull_plan *plan = NULL;
    struct job *job = open_and_plan(*state, &plan);

    plan->segments[0].index = (plan->segments[0].index + 1) % 64; /* as long as the right one */
    expect_fault(job, plan, "the sampler drew");
    skrull_plan_free(plan);
    job_unref(job);
}

static void test_job_check_plan__another_head(void **state)
{
    struct skrull_plan *plan = NULL;
    struct job *job = open_and_plan(*state, &plan);

    plan->epoch = 1;
    expect_fault(job, plan, "of epoch 0");
    plan->epoch = 0;
    plan->step = 3;
    expect_fault(job, plan, "is not of step 3");
    plan->step = 8;
    expect_fault(job, plan, "past the job's 8 steps");
    plan->step = 2;
    plan->job = "other";
    expect_fault(job, plan, "job other");
    plan->job = "";
    plan->uid = "ffffffffffffffffffffffffffffffff";
    expect_fault(job, plan, "uid ffffffffffffffffffffffffffffffff");
    plan->uid = "";
    plan->revision = 2;
    expect_fault(job, plan, "revision 2");
    skrull_plan_free(plan);
    job_unref(job);
}

/* A plan that skrullctl made has no uid and no revision. */
static void test_job_check_plan__without_identity(void **state)
{
    struct skrull_plan *plan = NULL;
    struct job *job = open_and_plan(*state, &plan);
    struct search search = {.says = ""};

    plan->uid = "";
    plan->revision = 0;
    assert_int_equal(job_check_plan(job, plan, search_fault, &search, NULL), 0);
    assert_false(search.is_found);
    skrull_plan_free(plan);
    job_unref(job);
}

static void test_job_check_plan__number_of_sequences(void **state)
{
    struct job_folder *folder = *state;
    struct skrull_plan *plan = NULL;
    struct job *job = open_and_plan(folder, &plan), *other;

    folder->spec.batch.global = 16;
    other = job_folder_open(folder);
    expect_fault(other, plan, "sequences");
    skrull_plan_free(plan);
    job_unref(job);
    job_unref(other);
}

/* Every option of the job that limits a plan is held: a job that differs in one alone refuses it.
 */
static void test_job_check_plan__options_of_micro_batches(void **state)
{
    static const uint32_t lengths[][2] = {{1, 3000}, {7, 900}, {0, 0}};
    struct job_folder *folder = *state;
    struct skrull_plan *plan = NULL;
    struct search search = {.says = ""};
    struct skrull_job other;
    struct job *job;

    job_folder_write(folder, "a.txt", lengths);
    folder->spec.batch.micro_batches = 6;
    folder->spec.batch.micro_batch_multiple = 3;
    job = job_folder_open(folder);
    assert_int_equal(job_plan(job, 0, &plan, NULL, NULL), 0);
    assert_int_equal(plan->ranks[0].n_micro_batches, 6);
    assert_int_equal(job_check_plan(job, plan, search_fault, &search, NULL), 0);
#define EXPECT(member, value, words)                                                               \
    other = *job_spec(job);                                                                        \
    other.batch.member = value;                                                                    \
    search = (struct search){.says = words};                                                       \
    assert_int_equal(job_check_plan_unseen(&other, plan, search_fault, &search, NULL),             \
                     PLAN_CHECK_UNSOUND);                                                          \
    assert_true(search.is_found)
    EXPECT(micro_batches, 9, "rank 7: 6 micro-batches, the job wants 9");
    EXPECT(micro_batch_multiple, 4, "rank 0: 6 micro-batches, the job wants a multiple of 4");
    EXPECT(micro_batch_min, 8, "rank 0: 6 micro-batches, the job wants at least 8");
    skrull_plan_free(plan);
    job_unref(job);
}

static void test_job_check_plan__uniform_mix(void **state)
{
    static const uint32_t lengths[][2] = {{2, 3000}, {6, 100}, {0, 0}};
    struct job_folder *folder = *state;
    struct skrull_plan *plan = NULL;
    struct search search = {.says = "the job's mix is uniform"};
    struct skrull_job other;
    struct job *job;

    job_folder_write(folder, "a.txt", lengths);
    job = job_folder_open(folder);
    assert_int_equal(job_plan(job, 0, &plan, NULL, NULL), 0);
    other = *job_spec(job);
    other.batch.mix = SKRULL_MIX_UNIFORM;
    assert_int_equal(job_check_plan_unseen(&other, plan, search_fault, &search, NULL),
                     PLAN_CHECK_UNSOUND);
    assert_true(search.is_found);
    skrull_plan_free(plan);
    job_unref(job);
    folder->spec.batch.mix = SKRULL_MIX_UNIFORM;
    job = job_folder_open(folder);
    assert_int_equal(job_plan(job, 0, &plan, NULL, NULL), 0);
    search = (struct search){.says = ""};
    assert_int_equal(job_check_plan(job, plan, search_fault, &search, NULL), 0);
    skrull_plan_free(plan);
    job_unref(job);
}

/* Without the indexes the limits and the head are still held. */
static void test_job_check_plan_unseen__rules_without_rows(void **state)
{
    struct skrull_plan *plan = NULL;
    struct job *job = open_and_plan(*state, &plan);
    struct search search = {.says = "bucket"};
    struct skrull_job narrow = *job_spec(job);

    assert_int_equal(job_check_plan_unseen(job_spec(job), plan, search_fault, &search, NULL), 0);
    narrow.batch.bucket_tokens = 64;
    assert_int_equal(job_check_plan_unseen(&narrow, plan, search_fault, &search, NULL),
                     PLAN_CHECK_UNSOUND);
    assert_true(search.is_found);
    plan->job = "other";
    search = (struct search){.says = "job other"};
    assert_int_equal(job_check_plan_unseen(job_spec(job), plan, search_fault, &search, NULL),
                     PLAN_CHECK_UNSOUND);
    assert_true(search.is_found);
    skrull_plan_free(plan);
    job_unref(job);
}

#define WITH_FOLDER(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, job_folder_setup, job_folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_job_check_plan__another_row),
        WITH_FOLDER(test_job_check_plan__another_head),
        WITH_FOLDER(test_job_check_plan__without_identity),
        WITH_FOLDER(test_job_check_plan__number_of_sequences),
        WITH_FOLDER(test_job_check_plan__options_of_micro_batches),
        WITH_FOLDER(test_job_check_plan__uniform_mix),
        WITH_FOLDER(test_job_check_plan_unseen__rules_without_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

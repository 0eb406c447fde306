/* Plans of lengths that come with the request. */
#include "job/plan_batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "job/job.h"
#include "unit/job/job_folder.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* <2, 4>, bucket 1,000, as in job_folder.h, without anything that a batch does not need. */
static struct skrull_job small_job(void)
{
    return (struct skrull_job){.name = "rollouts",
                               .model.preset = "qwen2.5-0.5b",
                               .parallel = {.dp = 2, .cp = 4},
                               .batch.bucket_tokens = 1000};
}

static struct skrull_plan *plan(const struct skrull_job *job, const struct job_lengths *batch)
{
    struct skrull_plan *made = NULL;
    struct skrull_error err = {0};

    if (job_plan_batch(job, batch, &made, &err)) {
        fail_msg("%s", err.message);
    }
    return made;
}

static void refuse(const struct skrull_job *job, const struct job_lengths *batch, const char *says)
{
    struct skrull_plan *made = NULL;
    struct skrull_error err = {0};
    const int result = job_plan_batch(job, batch, &made, &err);

    if (result != SKRULL_ERR_INVALID_ARGUMENT || !strstr(err.message, says)) {
        fail_msg("expected '%s', got %d: %s", says, result, err.message);
    }
    assert_null(made);
}

/* The sample's first segment, or one past the last. */
static const struct skrull_segment *look_for(const struct skrull_plan *made, uint64_t sample)
{
    size_t i = 0;

    while (i < made->n_segments && made->segments[i].sample != sample) {
        i++;
    }
    return &made->segments[i];
}

static bool is_planned(const struct skrull_plan *made, uint64_t sample)
{
    return look_for(made, sample) < made->segments + made->n_segments;
}

static const struct skrull_segment *find(const struct skrull_plan *made, uint64_t sample)
{
    assert_true(is_planned(made, sample));
    return look_for(made, sample);
}

static void test_job_plan_batch__samples_are_places(void **state)
{
    static const uint32_t lengths[] = {10, 3000, 7, 7, 500};
    const struct job_lengths batch = {.lengths = lengths, .n = COUNT(lengths)};
    const struct skrull_job job = small_job();
    struct skrull_plan *made = plan(&job, &batch);

    (void)state;
    assert_string_equal(made->job, "rollouts");
    assert_string_equal(made->uid, "");
    assert_string_equal(made->policy, "joint");
    assert_int_equal(made->revision, 0);
    assert_int_equal(made->step, 0);
    assert_int_equal(made->epoch, 0);
    assert_int_equal(made->n_ranks, 8);
    assert_int_equal(made->totals.sequences, 5);
    assert_int_equal(made->totals.tokens, 3524);
    assert_int_equal(made->totals.loss_tokens, 3524);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        const struct skrull_segment *segment = find(made, i);

        assert_int_equal(segment->index, i);
        assert_int_equal(segment->dataset, 0);
        assert_int_equal(segment->sequence_length, lengths[i]);
    }
    assert_false(is_planned(made, COUNT(lengths)));
    assert_true(made->estimate.bound_ns > 0);
    skrull_plan_free(made);
}

/* The same sequences, from an index and in the request: the same plan. */
static void test_job_plan_batch__is_a_step_of_the_job(void **state)
{
    static const uint32_t pairs[][2] = {{1, 3000}, {4, 100}, {3, 999}, {0, 0}};
    static const uint32_t lengths[] = {3000, 100, 100, 100, 100, 999, 999, 999};
    const struct job_lengths batch = {.lengths = lengths, .n = COUNT(lengths)};
    struct job_folder *folder = *state;
    struct skrull_plan *step = NULL, *made;
    struct job *job;

    job_folder_write(folder, "a.txt", pairs);
    folder->spec.order = SKRULL_ORDER_SEQUENTIAL;
    folder->spec.batch.micro_batch_order = SKRULL_MICRO_BATCH_ORDER_LARGEST_FIRST;
    folder->spec.batch.mix = SKRULL_MIX_UNIFORM;
    folder->spec.batch.micro_batches = 5;
    job = job_folder_open(folder);
    assert_int_equal(job_plan(job, 0, &step, NULL, NULL), 0);
    made = plan(&folder->spec, &batch);
    assert_memory_equal(made->digest, step->digest, SKRULL_DIGEST_SIZE);
    assert_int_equal(made->estimate.iteration_ns, step->estimate.iteration_ns);
    assert_string_equal(made->uid, ""); /* the folder's job has one */
    assert_int_equal(made->revision, 0);
    skrull_plan_free(made);
    skrull_plan_free(step);
    job_unref(job);
}

/* Whatever else the job says of data, no index is looked for and nothing of it is judged. */
static void test_job_plan_batch__ignores_data(void **state)
{
    static const uint32_t lengths[] = {10, 20};
    const struct job_lengths batch = {.lengths = lengths, .n = COUNT(lengths)};
    struct skrull_dataset data[2] = {{.index = "/no/such/file", .format = "magic", .weight = 0.5},
                                     {.weight = -1}};
    struct skrull_job job = small_job();
    struct skrull_plan *made, *other;

    (void)state;
    made = plan(&job, &batch);
    job.data = data;
    job.n_data = 2;
    job.batch.global = 77;
    job.epochs = 3;
    job.steps = 4;
    job.seed = 9;
    job.order = SKRULL_ORDER_SORTED;
    other = plan(&job, &batch);
    assert_memory_equal(made->digest, other->digest, SKRULL_DIGEST_SIZE);
    assert_string_equal(data[0].index, "/no/such/file");
    assert_int_equal(job.batch.global, 77); /* only read */
    assert_null(job.policy);
    skrull_plan_free(made);
    skrull_plan_free(other);
}

static void test_job_plan_batch__loss_tokens(void **state)
{
    static const uint32_t lengths[] = {10, 20, 30}, loss_tokens[] = {0, 20, 5};
    const struct job_lengths batch = {
        .lengths = lengths, .loss_tokens = loss_tokens, .n = 3, .n_loss_tokens = 3};
    const struct skrull_job job = small_job();
    struct skrull_plan *made = plan(&job, &batch);
    static const double weights[] = {0, 1.0 / 25, 1.0 / 25};

    (void)state;
    assert_int_equal(made->totals.loss_tokens, 25);
    for (size_t i = 0; i < 3; i++) {
        assert_memory_equal(&find(made, i)->loss_weight, &weights[i], sizeof(weights[i]));
    }
    skrull_plan_free(made);
}

static void test_job_plan_batch__over_length(void **state)
{
    static const uint32_t lengths[] = {10, 4001, 4000, 9000}, loss_tokens[] = {1, 1, 1, 1};
    static const uint32_t all[] = {4001, UINT32_MAX};
    struct job_lengths batch = {.lengths = lengths, .n = COUNT(lengths)};
    struct skrull_dataset data = {0};
    struct skrull_job job = small_job();
    struct skrull_plan *made;

    (void)state;
    refuse(&job, &batch,
           "lengths[1]: 2 of the 4 sequences are longer than 4000 tokens, the limit of "
           "bucket_tokens 1000 with cp 4 and policy joint; the longest has 9000: set "
           "data[0].over_length to truncate or drop");
    job.data = &data;
    job.n_data = 1;
    refuse(&job, &batch, "2 of the 4 sequences are longer"); /* not given is reject */
    data.over_length = SKRULL_OVER_LENGTH_TRUNCATE;
    made = plan(&job, &batch);
    assert_int_equal(made->totals.tokens, 10 + 3 * 4000);
    assert_int_equal(made->totals.loss_tokens, 10 + 3 * 4000);
    assert_int_equal(find(made, 3)->sequence_length, 4000);
    skrull_plan_free(made);
    data.over_length = SKRULL_OVER_LENGTH_DROP;
    made = plan(&job, &batch);
    assert_int_equal(made->totals.sequences, 2);
    assert_false(is_planned(made, 1));
    assert_int_equal(find(made, 2)->index, 2); /* others keep their places */
    skrull_plan_free(made);
    batch = (struct job_lengths){.lengths = all, .n = 2};
    refuse(&job, &batch, "data[0].over_length: all 2 sequences are longer than 4000 tokens");
    data.over_length = SKRULL_OVER_LENGTH_TRUNCATE;
    batch = (struct job_lengths){
        .lengths = lengths, .loss_tokens = loss_tokens, .n = 4, .n_loss_tokens = 4};
    refuse(&job, &batch, "data[0].over_length: truncate would cut 2 sequences, whose loss_tokens");
    data.over_length = 99;
    refuse(&job, &batch, "data[0].over_length: ");
}

static void test_job_plan_batch__refused(void **state)
{
    static const uint32_t lengths[] = {10, 0, 30}, fine[] = {10, 20}, loss_tokens[] = {10, 21};
    struct job_lengths batch = {.lengths = lengths};
    struct skrull_job job = small_job();
    uint32_t *many = calloc(JOB_PLAN_BATCH_MAX + 1, sizeof(*many));

    (void)state;
    assert_non_null(many);
    refuse(&job, &batch, "lengths: the batch is empty");
    batch.n = 3;
    refuse(&job, &batch, "lengths[1]: 0 tokens");
    batch = (struct job_lengths){
        .lengths = fine, .loss_tokens = loss_tokens, .n = 2, .n_loss_tokens = 2};
    refuse(&job, &batch, "loss_tokens[1]: 21 are more than the sequence's 20 tokens");
    batch.n_loss_tokens = 1;
    refuse(&job, &batch, "loss_tokens: 1 numbers for 2 lengths");
    batch = (struct job_lengths){.lengths = many, .n = JOB_PLAN_BATCH_MAX + 1};
    refuse(&job, &batch, "lengths: 1048577 sequences are too many, at most 1048576");
    batch = (struct job_lengths){.lengths = fine, .n = 2};
    job.name = NULL;
    refuse(&job, &batch, "name: is required");
    job = small_job();
    job.policy = "magic";
    refuse(&job, &batch, "unknown policy magic");
    job = small_job();
    job.model.preset = "magic";
    refuse(&job, &batch, "magic");
    job = small_job();
    job.batch.micro_batches = 1;
    job.policy = "uniform";
    job.parallel.dp = 1;
    refuse(&job, &batch, "batch.micro_batches: 1 are too few for step 0, which needs 2");
    free(many);
}

#define WITH_FOLDER(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, job_folder_setup, job_folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job_plan_batch__samples_are_places),
        WITH_FOLDER(test_job_plan_batch__is_a_step_of_the_job),
        cmocka_unit_test(test_job_plan_batch__ignores_data),
        cmocka_unit_test(test_job_plan_batch__loss_tokens),
        cmocka_unit_test(test_job_plan_batch__over_length),
        cmocka_unit_test(test_job_plan_batch__refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

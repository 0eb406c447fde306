/* Plans made without a daemon: the same bytes, and refused wherever they might not be. */
#include "local_planner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <skrull/client.h>
#include <skrull/plan.h>

#include "arena.h"
#include "codec_job.h"
#include "codec_rpc.h"
#include "job/job.h"
#include "job/revise.h"
#include "owned_job.h"
#include "unit/job/job_folder.h"

#define UID "0123456789abcdef0123456789abcdef"

/* What a client gets of an opened job. */
static struct skrull_job *over_the_wire(const struct skrull_job *spec)
{
    struct arena *arena = arena_new((size_t)1 << 20);
    struct rpc_bytes bytes = {0};
    struct skrull_job *job = NULL;
    uint8_t *packed = NULL;

    assert_non_null(arena);
    assert_int_equal(codec_job_pack(arena, spec, &packed, &bytes.len, NULL), 0);
    bytes.data = packed;
    assert_int_equal(owned_job_decode(bytes, &job, NULL), 0);
    arena_free(arena);
    return job;
}

/* Opens the folder's job as the daemon does. */
static struct job *open_job(struct job_folder *folder)
{
    static const uint32_t lengths[][2] = {{100, 50}, {60, 900}, {40, 3000}, {0}};

    job_folder_write(folder, "a.txt", lengths);
    return job_folder_open(folder);
}

static struct local_planner *planner_of(const struct job_folder *folder, const struct job *job)
{
    struct local_planner *planner = NULL;

    assert_int_equal(local_planner_new(folder->roots.paths, folder->roots.n_paths, &planner, NULL),
                     0);
    if (job) {
        local_planner_learn(planner, over_the_wire(job_spec(job)));
    }
    return planner;
}

static void digest_of(const struct job *job, uint64_t step, char ret_hex[SKRULL_DIGEST_HEX_SIZE])
{
    struct skrull_plan *plan;

    assert_int_equal(job_plan(job, step, &plan, NULL, NULL), 0);
    skrull_digest_to_hex(plan->digest, ret_hex);
    skrull_plan_free(plan);
}

static void expect_refused(struct local_planner *planner, const char *uid, uint64_t step,
                           const char *digest_before, int code, const char *says)
{
    struct skrull_error err = {0};
    int r = local_planner_prepare(planner, uid, step, digest_before, &err);

    if (r != code || !strstr(err.message, says)) {
        fail_msg("expected '%s', got %d: %s", says, r, err.message);
    }
}

/* A plan here is, byte for byte, the message that the job's daemon sends. */
static void expect_same_bytes(struct local_planner *planner, const struct job *job, uint64_t step,
                              uint32_t data_rank)
{
    struct skrull_plan *plan;
    uint8_t *here = NULL, *there = NULL;
    size_t len_here, len_there;

    assert_int_equal(job_plan(job, step, &plan, NULL, NULL), 0);
    assert_int_equal(codec_stream_plan_pack(plan, data_rank, &there, &len_there, NULL), 0);
    assert_int_equal(local_planner_plan(planner, step, data_rank, &here, &len_here, NULL), 0);
    assert_int_equal(len_here, len_there);
    assert_memory_equal(here, there, len_there);
    free(here);
    free(there);
    skrull_plan_free(plan);
}

static void test_local_planner_plan__same_bytes(void **state)
{
    struct job *job = open_job(*state);
    struct local_planner *planner = planner_of(*state, job);
    char digest[SKRULL_DIGEST_HEX_SIZE];

    digest_of(job, 11, digest);
    assert_int_equal(local_planner_steps(planner), 25);
    assert_int_equal(local_planner_prepare(planner, UID, 12, digest, NULL), 0);
    for (uint64_t step = 12; step < 25; step++) {
        expect_same_bytes(planner, job, step, (uint32_t)(step % 8));
    }
    assert_int_equal(local_planner_prepare(planner, UID, 25, "", NULL),
                     0); /* nothing left to plan */
    local_planner_free(planner);
    job_unref(job);
}

static void test_local_planner_prepare__refusals(void **state)
{
    struct job *job = open_job(*state);
    struct local_planner *planner = planner_of(*state, NULL);

    expect_refused(planner, "", 0, "", SKRULL_ERR_FAILED_PRECONDITION,
                   "was not read from the daemon");
    local_planner_learn(planner, over_the_wire(job_spec(job)));
    expect_refused(planner, "ffffffffffffffffffffffffffffffff", 0, "",
                   SKRULL_ERR_FAILED_PRECONDITION, "has uid " UID);
    expect_refused(planner, UID, 5, UID, SKRULL_ERR_FAILED_PRECONDITION, "step 4 has digest");
    assert_int_equal(local_planner_prepare(planner, UID, 0, UID, NULL),
                     0); /* no step is before 0 */
    local_planner_free(planner);
    job_unref(job);
}

static void test_local_planner_prepare__other_indexes(void **state)
{
    static const uint32_t others[][2] = {{100, 50}, {60, 901}, {40, 3000}, {0}};
    struct job_folder *folder = *state;
    struct job *job = open_job(folder);
    struct local_planner *planner = planner_of(folder, job);
    struct skrull_error err;
    uint8_t *bytes;
    size_t len;

    assert_int_equal(local_planner_prepare(planner, UID, 0, "", NULL), 0);
    job_folder_write(folder, "a.txt", others); /* while it is open */
    assert_int_equal(local_planner_plan(planner, 0, 0, &bytes, &len, &err),
                     SKRULL_ERR_FAILED_PRECONDITION);
    assert_non_null(strstr(err.message, "a.txt was written to"));
    local_planner_free(planner);

    planner = planner_of(folder, job);
    expect_refused(planner, UID, 0, "", SKRULL_ERR_FAILED_PRECONDITION, "the job was created with");
    local_planner_free(planner);

    folder->root = "/proc";
    planner = planner_of(folder, job);
    expect_refused(planner, UID, 0, "", SKRULL_ERR_NOT_FOUND, "a.txt");
    local_planner_free(planner);
    job_unref(job);
}

static void test_local_planner_plan__no_such_rank(void **state)
{
    struct job *job = open_job(*state);
    struct local_planner *planner = planner_of(*state, job);
    uint8_t *bytes;
    size_t len;

    assert_int_equal(local_planner_plan(planner, 0, 8, &bytes, &len, NULL),
                     SKRULL_ERR_INVALID_ARGUMENT);
    local_planner_free(planner);
    job_unref(job);
}

/* The job with a larger bucket from step 10 on. */
static struct job *revised(const struct job *job, struct arena *arena)
{
    static const char *const mask[] = {"batch.bucket_tokens"};
    const struct skrull_job change = {.batch = {.bucket_tokens = 2000}};
    const struct revise_request request = {
        .job = &change, .mask = mask, .n_mask = 1, .from_step = 10};
    struct skrull_error err = {0};
    struct skrull_job *spec;
    struct job *ret = NULL;

    if (revise_spec(arena, job_spec(job), &request, &spec, &err) ||
        job_revise(job, spec, &ret, &err)) {
        fail_msg("%s", err.message);
    }
    return ret;
}

static void test_local_planner_learn__revisions(void **state)
{
    struct job *first = open_job(*state);
    struct arena *arena = arena_new((size_t)1 << 20);
    struct job *both = revised(first, arena);
    struct local_planner *planner = planner_of(*state, first);
    uint8_t *bytes;
    size_t len;

    assert_true(local_planner_knows(planner, UID, 1));
    assert_false(local_planner_knows(planner, UID, 2));
    assert_false(local_planner_knows(planner, "ffffffffffffffffffffffffffffffff", 1));
    local_planner_expire(planner, 10); /* the daemon said so, and went */
    expect_same_bytes(planner, both, 9, 1);
    assert_int_equal(local_planner_plan(planner, 10, 1, &bytes, &len, NULL),
                     SKRULL_ERR_FAILED_PRECONDITION);
    local_planner_learn(planner,
                        over_the_wire(job_spec(first))); /* the same again says nothing new */
    assert_int_equal(local_planner_plan(planner, 10, 1, &bytes, &len, NULL),
                     SKRULL_ERR_FAILED_PRECONDITION);
    local_planner_learn(planner, over_the_wire(job_spec(both)));
    assert_true(local_planner_knows(planner, UID, 1));
    assert_true(local_planner_knows(planner, UID, 2));
    for (uint64_t step = 8; step < 13; step++) {
        expect_same_bytes(planner, both, step, 1);
    }
    local_planner_free(planner);
    arena_free(arena);
    job_unref(both);
    job_unref(first);
}

/* Who only ever knew the second revision has no steps before it. */
static void test_local_planner_learn__only_the_newest(void **state)
{
    struct job *first = open_job(*state);
    struct arena *arena = arena_new((size_t)1 << 20);
    struct job *both = revised(first, arena);
    struct local_planner *planner = planner_of(*state, both);
    char digest[SKRULL_DIGEST_HEX_SIZE];

    digest_of(both, 9, digest);
    expect_refused(planner, UID, 9, "", SKRULL_ERR_FAILED_PRECONDITION, "step 9 is of a revision");
    assert_int_equal(local_planner_prepare(planner, UID, 10, digest, NULL), 0);
    expect_same_bytes(planner, both, 10, 7);
    local_planner_free(planner);
    arena_free(arena);
    job_unref(both);
    job_unref(first);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, job_folder_setup, job_folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_local_planner_plan__same_bytes),
        TEST(test_local_planner_prepare__refusals),
        TEST(test_local_planner_prepare__other_indexes),
        TEST(test_local_planner_plan__no_such_rank),
        TEST(test_local_planner_learn__revisions),
        TEST(test_local_planner_learn__only_the_newest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Next revisions as values: masks, what may change, from which step. */
#include "job/revise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"
#include "job_fields.h"
#include "unit/job/job_folder.h"

/* A job at its second revision, and an update without fields. */
struct fixture {
    struct job_folder *folder;
    struct arena *arena;
    struct skrull_revision_info list[2];
    struct skrull_dataset data[1];
    struct skrull_job update;
    struct revise_request request;
};

static void init(struct fixture *fixture, struct job_folder *folder)
{
    memset(fixture, 0, sizeof(*fixture));
    fixture->folder = folder;
    fixture->arena = arena_new(1 << 20);
    assert_non_null(fixture->arena);
    folder->spec.steps = 1000;
    (void)job_folder_spec(folder);
    folder->spec.revision = 2;
    folder->spec.info.steps = 1000;
    fixture->list[0] = (struct skrull_revision_info){1, 0, 8};
    fixture->list[1] = (struct skrull_revision_info){2, 64, 8};
    folder->spec.info.revisions = fixture->list;
    folder->spec.info.n_revisions = 2;
    fixture->update.name = "job";
    fixture->request.job = &fixture->update;
    fixture->request.floor = 128;
}

static const struct skrull_job *revise(struct fixture *fixture)
{
    struct skrull_error err = {0};
    struct skrull_job *spec = NULL;

    if (revise_spec(fixture->arena, &fixture->folder->spec, &fixture->request, &spec, &err)) {
        fail_msg("refused: %s", err.message);
    }
    return spec;
}

static void refuse(struct fixture *fixture, int code, const char *says)
{
    struct skrull_error err = {0};
    struct skrull_job *spec = NULL;
    int result =
        revise_spec(fixture->arena, &fixture->folder->spec, &fixture->request, &spec, &err);

    if (result != code || !strstr(err.message, says)) {
        fail_msg("expected '%s', got %d: %s", says, result, err.message);
    }
    assert_null(spec);
}

static void set_mask(struct fixture *fixture, const char *const *mask, size_t n)
{
    fixture->request.mask = mask;
    fixture->request.n_mask = n;
}

static void test_revise_spec__without_a_mask_what_is_set(void **state)
{
    struct fixture fixture;
    const struct skrull_job *spec;

    init(&fixture, *state);
    fixture.update.parallel.dp = 4;
    fixture.update.parallel.cp = 2;
    fixture.update.policy = "uniform";
    spec = revise(&fixture);
    assert_int_equal(spec->parallel.dp, 4);
    assert_int_equal(spec->parallel.cp, 2);
    assert_string_equal(spec->policy, "uniform");
    assert_int_equal(spec->batch.global, 8); /* as it was */
    assert_int_equal(spec->batch.bucket_tokens, 1000);
    assert_int_equal(spec->steps, 1000);
    assert_string_equal(spec->data[0].index, "a.txt");
    assert_string_equal(spec->uid, fixture.folder->spec.uid);
    assert_int_equal(spec->revision, 3);
    assert_int_equal(spec->info.steps, 0);
    assert_int_equal(spec->info.n_revisions, 3);
    assert_int_equal(spec->info.revisions[1].first_step, 64);
    assert_int_equal(spec->info.revisions[2].revision, 3);
    assert_int_equal(spec->info.revisions[2].first_step, 128);
    assert_int_equal(spec->info.revisions[2].global, 8);
    assert_int_equal(fixture.folder->spec.parallel.dp, 2); /* the current one is left alone */
    assert_int_equal(fixture.folder->spec.info.n_revisions, 2);
    arena_free(fixture.arena);
}

static void test_revise_spec__masks(void **state)
{
    static const struct {
        const char *mask[3];
        size_t n;
        uint32_t dp, bucket_tokens, align;
        const char *policy;
    } cases[] = {
        {{"parallel.dp"}, 1, 4, 1000, 2, "uniform"},
        {{"batch"}, 1, 2, 2000, 1, "uniform"}, /* align is not set: its default */
        {{"batch.bucket_tokens", "policy"}, 2, 2, 2000, 2, "joint"},
        {{"batch.bucketTokens"}, 1, 2, 2000, 2, "uniform"},
        {{"batch.align"}, 1, 2, 1000, 1, "uniform"},
        {{"parallel.dp", "info", "uid"}, 3, 4, 1000, 2, "uniform"},
        {{"parallel.dp", "info.steps", "revision"}, 3, 4, 1000, 2, "uniform"},
    };
    struct fixture fixture;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct skrull_job *spec;

        init(&fixture, *state);
        fixture.folder->spec.policy = "uniform";
        fixture.folder->spec.batch.align = 2;
        fixture.update.parallel = fixture.folder->spec.parallel;
        fixture.update.parallel.dp = 4;
        fixture.update.batch.global = 8;
        fixture.update.batch.bucket_tokens = 2000;
        set_mask(&fixture, cases[i].mask, cases[i].n);
        spec = revise(&fixture);
        print_message("# case %zu\n", i);
        assert_int_equal(spec->parallel.dp, cases[i].dp);
        assert_int_equal(spec->batch.bucket_tokens, cases[i].bucket_tokens);
        assert_int_equal(spec->batch.align, cases[i].align);
        assert_string_equal(spec->policy, cases[i].policy);
        arena_free(fixture.arena);
    }
}

static void test_revise_spec__a_full_mask_takes_all(void **state)
{
    static const char *const all[] = {"*"};
    struct fixture fixture;
    struct skrull_job other;

    init(&fixture, *state);
    other = fixture.folder->spec;
    other.policy = "uniform";
    other.effort = NULL;
    fixture.request.job = &other;
    set_mask(&fixture, all, 1);
    assert_string_equal(revise(&fixture)->policy, "uniform");
    other.name = "another";
    refuse(&fixture, SKRULL_ERR_INVALID_ARGUMENT, "name: cannot change");
    other.name = "job";
    other.parallel.dp = 0;
    refuse(&fixture, SKRULL_ERR_INVALID_ARGUMENT, "parallel.dp: is required");
    arena_free(fixture.arena);
}

static void test_revise_spec__unknown_paths(void **state)
{
    static const char *const wrong[] = {
        "",          "dp",      "batch.",     "batch.glob", "data[0]",
        "data.seed", "par",     "parallel.x", "uids",       "Seed",
        ".",         "batch.*", "infos",      "seed.x",     "batch.global.x"};
    struct fixture fixture;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *mask[] = {"policy", wrong[i]};
        char says[64];

        init(&fixture, *state);
        fixture.update.policy = "uniform";
        set_mask(&fixture, mask, 2);
        (void)snprintf(says, sizeof(says), "update_mask: %s is no field",
                       *wrong[i] ? wrong[i] : "an empty path");
        refuse(&fixture, SKRULL_ERR_INVALID_ARGUMENT, says);
        arena_free(fixture.arena);
    }
}

static void test_revise_spec__what_the_order_hangs_on(void **state)
{
    struct fixture fixture;

    init(&fixture, *state);
    fixture.update.seed = 5;
    refuse(&fixture, SKRULL_ERR_INVALID_ARGUMENT, "seed: cannot change in a job that exists");
    fixture.update.seed = 0;
    fixture.update.order = SKRULL_ORDER_SEQUENTIAL;
    refuse(&fixture, SKRULL_ERR_INVALID_ARGUMENT, "order: cannot change");
    fixture.update.order = SKRULL_ORDER_SHUFFLE; /* as it is */
    fixture.update.last_batch = SKRULL_LAST_BATCH_KEEP;
    refuse(&fixture, SKRULL_ERR_INVALID_ARGUMENT, "last_batch: cannot change");
    fixture.update.last_batch = 0;
    fixture.update.name = "other";
    refuse(&fixture, SKRULL_ERR_INVALID_ARGUMENT, "name: cannot change");
    fixture.update.name = "job";
    fixture.update.data = fixture.data;
    fixture.update.n_data = 1;
    fixture.data[0].index = "b.txt";
    refuse(&fixture, SKRULL_ERR_INVALID_ARGUMENT, "data: cannot change");
    fixture.data[0].index = "a.txt";
    fixture.data[0].over_length = SKRULL_OVER_LENGTH_DROP;
    refuse(&fixture, SKRULL_ERR_INVALID_ARGUMENT, "data: cannot change");
    fixture.data[0].over_length = 0; /* its default, as it is */
    fixture.update.policy = "uniform";
    assert_string_equal(revise(&fixture)->policy, "uniform");
    assert_int_equal(fixture.data[0].over_length, 0); /* the update is left alone */
    arena_free(fixture.arena);
}

static void test_revise_spec__refuses_what_completing_refuses(void **state)
{
    struct fixture fixture;

    init(&fixture, *state);
    fixture.update.parallel.dp = 60000;
    fixture.update.parallel.cp = 60000;
    refuse(&fixture, SKRULL_ERR_INVALID_ARGUMENT, "parallel.dp: dp x cp is");
    fixture.update.parallel.dp = 0;
    fixture.update.parallel.cp = 0;
    fixture.update.epochs = 5;
    fixture.update.steps = 5;
    refuse(&fixture, SKRULL_ERR_INVALID_ARGUMENT, "steps: epochs is given too");
    arena_free(fixture.arena);
}

static void test_revise_spec__epochs_and_steps_take_turns(void **state)
{
    struct fixture fixture;
    const struct skrull_job *spec;

    init(&fixture, *state);
    fixture.update.steps = 500;
    spec = revise(&fixture);
    assert_int_equal(spec->steps, 500);
    assert_int_equal(spec->epochs, 0);
    fixture.update.steps = 0;
    fixture.update.epochs = 3;
    spec = revise(&fixture);
    assert_int_equal(spec->steps, 0);
    assert_int_equal(spec->epochs, 3);
    fixture.update.epochs = 0;
    fixture.update.steps = 128;
    assert_int_equal(revise(&fixture)->steps, 128); /* it ends with what was given out */
    fixture.update.steps = 127;
    refuse(&fixture, SKRULL_ERR_INVALID_ARGUMENT, "steps: 127 are fewer than the 128");
    arena_free(fixture.arena);
}

static void test_revise_spec__where_it_begins(void **state)
{
    struct fixture fixture;

    init(&fixture, *state);
    fixture.update.policy = "uniform";
    fixture.request.from_step = 127;
    refuse(&fixture, SKRULL_ERR_FAILED_PRECONDITION,
           "from_step: 127 may have been given out already: a revision of job job can begin at "
           "step 128 or later");
    fixture.request.from_step = 128;
    assert_int_equal(revise(&fixture)->info.revisions[2].first_step, 128);
    fixture.request.from_step = 1000;
    assert_int_equal(revise(&fixture)->info.revisions[2].first_step, 1000);
    fixture.request.from_step = 1001;
    refuse(&fixture, SKRULL_ERR_OUT_OF_RANGE, "from_step: 1001 is past the end");
    fixture.request.from_step = 0;
    fixture.request.floor = 0;
    fixture.folder->spec.info.n_revisions = 0;
    fixture.folder->spec.revision = 1;
    assert_int_equal(revise(&fixture)->info.n_revisions, 2);
    assert_int_equal(revise(&fixture)->info.revisions[0].revision, 1);
    assert_int_equal(revise(&fixture)->info.revisions[1].first_step, 0);
    arena_free(fixture.arena);
}

static void test_revise_spec__expected_revision(void **state)
{
    struct fixture fixture;

    init(&fixture, *state);
    fixture.update.policy = "uniform";
    fixture.request.expected_revision = 2;
    assert_int_equal(revise(&fixture)->revision, 3);
    fixture.request.expected_revision = 1;
    refuse(&fixture, SKRULL_ERR_ABORTED, "expected_revision: job job has revision 2, not 1");
    fixture.request.expected_revision = 3;
    refuse(&fixture, SKRULL_ERR_ABORTED, "not 3");
    arena_free(fixture.arena);
}

static void test_revise_spec__nothing_changes(void **state)
{
    struct fixture fixture;
    struct skrull_job *spec = NULL;

    init(&fixture, *state);
    assert_int_equal(
        revise_spec(fixture.arena, &fixture.folder->spec, &fixture.request, &spec, NULL),
        REVISE_UNCHANGED);
    fixture.request.job = &fixture.folder->spec; /* all set, all as it is */
    assert_int_equal(
        revise_spec(fixture.arena, &fixture.folder->spec, &fixture.request, &spec, NULL),
        REVISE_UNCHANGED);
    assert_null(spec);
    arena_free(fixture.arena);
}

static void test_revise_spec__too_many(void **state)
{
    static struct skrull_revision_info list[JOB_MAX_REVISIONS];
    struct fixture fixture;

    init(&fixture, *state);
    fixture.update.policy = "uniform";
    for (uint32_t i = 0; i < JOB_MAX_REVISIONS; i++) {
        list[i] = (struct skrull_revision_info){i + 1, i, 8};
    }
    fixture.folder->spec.info.revisions = list;
    fixture.folder->spec.info.n_revisions = JOB_MAX_REVISIONS - 1;
    fixture.folder->spec.revision = JOB_MAX_REVISIONS - 1;
    fixture.request.floor = 1000;
    assert_int_equal(revise(&fixture)->info.n_revisions, JOB_MAX_REVISIONS);
    fixture.folder->spec.info.n_revisions = JOB_MAX_REVISIONS;
    fixture.folder->spec.revision = JOB_MAX_REVISIONS;
    refuse(&fixture, SKRULL_ERR_RESOURCE_EXHAUSTED, "job job has 1024 revisions");
    arena_free(fixture.arena);
}

static void test_revise_spec__out_of_memory(void **state)
{
    struct fixture fixture;
    struct skrull_job *spec = NULL;
    int result = SKRULL_ERR_RESOURCE_EXHAUSTED;

    init(&fixture, *state);
    fixture.update.policy = "uniform";
    for (size_t budget = 0; result && budget < 100000; budget += 64) {
        struct arena *arena = arena_new(budget);

        result = revise_spec(arena, &fixture.folder->spec, &fixture.request, &spec, NULL);
        assert_true(result == 0 || result == SKRULL_ERR_RESOURCE_EXHAUSTED);
        arena_free(arena);
    }
    assert_int_equal(result, 0);
    arena_free(fixture.arena);
}

#define WITH_FOLDER(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, job_folder_setup, job_folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_revise_spec__without_a_mask_what_is_set),
        WITH_FOLDER(test_revise_spec__masks),
        WITH_FOLDER(test_revise_spec__a_full_mask_takes_all),
        WITH_FOLDER(test_revise_spec__unknown_paths),
        WITH_FOLDER(test_revise_spec__what_the_order_hangs_on),
        WITH_FOLDER(test_revise_spec__refuses_what_completing_refuses),
        WITH_FOLDER(test_revise_spec__epochs_and_steps_take_turns),
        WITH_FOLDER(test_revise_spec__where_it_begins),
        WITH_FOLDER(test_revise_spec__expected_revision),
        WITH_FOLDER(test_revise_spec__nothing_changes),
        WITH_FOLDER(test_revise_spec__too_many),
        WITH_FOLDER(test_revise_spec__out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

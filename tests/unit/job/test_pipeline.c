/* Planning ahead, with makers that this test moves by hand. */
#include "job/pipeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"
#include "job/shared_bytes.h"

#define MAX_TASKS 64
#define STEPS 100

struct maker {
    struct task {
        void (*work)(void *task);
        void (*done)(void *task);
        void *task;
    } tasks[MAX_TASKS]; /* [n_tasks] not yet done, in the order of their start */
    size_t n_tasks;
    bool is_out_of_memory;
    uint64_t planned[MAX_TASKS]; /* [n_planned] steps, in the order of their making */
    size_t n_planned;
    uint64_t fails_at;
    int n_released;
};

static int run(void *run_arg, void (*work)(void *task), void (*done)(void *task), void *task)
{
    struct maker *maker = run_arg;

    if (maker->is_out_of_memory) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    assert_true(maker->n_tasks < MAX_TASKS);
    maker->tasks[maker->n_tasks++] = (struct task){work, done, task};
    return 0;
}

/* Finishes the task that was started first. */
static void finish_one(struct maker *maker)
{
    struct task task = maker->tasks[0];

    assert_true(maker->n_tasks > 0);
    maker->n_tasks--;
    memmove(maker->tasks, maker->tasks + 1, maker->n_tasks * sizeof(task));
    task.work(task.task);
    task.done(task.task);
}

static void finish_all(struct maker *maker)
{
    while (maker->n_tasks > 0) {
        finish_one(maker);
    }
}

static int plan(void *arg, uint64_t step, struct skrull_plan **ret_plan, struct skrull_error *err)
{
    struct maker *maker = arg;
    struct arena *arena = arena_new(1 << 16);
    struct skrull_plan *made = ARENA_NEW(arena, struct skrull_plan);

    assert_true(maker->n_planned < MAX_TASKS);
    maker->planned[maker->n_planned++] = step;
    if (step == maker->fails_at) {
        arena_free(arena);
        return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION, "step %d fails", (int)step);
    }
    made->job = made->uid = made->policy = "";
    made->step = step;
    made->dp = 2;
    made->cp = 1;
    memset(made->digest, (int)step, sizeof(made->digest));
    made->n_ranks = 2;
    made->ranks = ARENA_ARRAY(arena, struct skrull_rank, 2);
    made->ranks[1].data_rank = 1;
    made->arena = arena;
    *ret_plan = made;
    return 0;
}

static void release(void *arg)
{
    ((struct maker *)arg)->n_released++;
}

/* Someone who waits; counts what it heard. */
struct asker {
    struct pipeline_wait wait;
    int n_plans, n_errors;
    uint64_t step;
    char message[64];
    struct planned *kept;
};

static void on_done(void *arg, struct planned *planned, const struct skrull_error *err)
{
    struct asker *asker = arg;

    if (err) {
        asker->n_errors++;
        (void)snprintf(asker->message, sizeof(asker->message), "%.60s", err->message);
        return;
    }
    asker->n_plans++;
    asker->step = planned->plan->step;
    if (!asker->kept) {
        asker->kept = planned_ref(planned);
    }
}

static void ask(struct pipeline *pipeline, uint64_t step, bool is_stream, struct asker *asker)
{
    asker->wait.done = on_done;
    asker->wait.arg = asker;
    pipeline_ask(pipeline, step, is_stream, &asker->wait);
}

static struct pipeline *pipeline_in(struct pipeline_memory *memory, struct maker *maker,
                                    uint32_t max_running, uint32_t ahead, size_t max_steps,
                                    size_t max_bytes)
{
    const struct pipeline_source source = {
        .steps = STEPS, .plan = plan, .release = release, .arg = maker};
    const struct pipeline_options options = {.run = run,
                                             .run_arg = maker,
                                             .max_running = max_running,
                                             .ahead = ahead,
                                             .max_steps = max_steps,
                                             .max_bytes = max_bytes,
                                             .memory = memory};
    struct pipeline *pipeline;

    *maker = (struct maker){.fails_at = UINT64_MAX};
    assert_int_equal(pipeline_new(&source, &options, &pipeline, NULL), 0);
    return pipeline;
}

static struct pipeline *pipeline_of(struct maker *maker, uint32_t max_running, uint32_t ahead,
                                    size_t max_steps, size_t max_bytes)
{
    return pipeline_in(NULL, maker, max_running, ahead, max_steps, max_bytes);
}

static void close_pipeline(struct pipeline *pipeline, struct maker *maker)
{
    struct skrull_error err = {.code = SKRULL_ERR_NOT_FOUND, .message = "closed"};

    pipeline_close(pipeline, &err);
    finish_all(maker);
    assert_int_equal(maker->n_released, 1);
}

static void test_pipeline_ask__one_plan_for_all_who_ask(void **state)
{
    struct maker maker;
    struct pipeline *pipeline = pipeline_of(&maker, 2, 0, 8, SIZE_MAX);
    struct asker askers[3] = {0};

    (void)state;
    for (int i = 0; i < 3; i++) {
        ask(pipeline, 7, true, &askers[i]);
        assert_int_equal(askers[i].n_plans, 0);
    }
    assert_int_equal(maker.n_tasks, 1);
    finish_all(&maker);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(askers[i].n_plans, 1);
        assert_int_equal(askers[i].step, 7);
        assert_ptr_equal(askers[i].kept, askers[0].kept);
    }
    assert_int_equal(askers[0].kept->n_messages, 2);
    assert_true(askers[0].kept->messages[1]->len > 0);
    for (int i = 0; i < 3; i++) {
        planned_unref(askers[i].kept);
    }
    close_pipeline(pipeline, &maker);
}

static void test_pipeline_ask__kept_plans_come_at_once(void **state)
{
    struct maker maker;
    struct pipeline *pipeline = pipeline_of(&maker, 2, 0, 8, SIZE_MAX);
    struct asker first = {0}, second = {0};

    (void)state;
    ask(pipeline, 7, false, &first);
    finish_all(&maker);
    ask(pipeline, 7, false, &second);
    assert_int_equal(second.n_plans, 1);
    assert_int_equal(maker.n_planned, 1);
    planned_unref(first.kept);
    planned_unref(second.kept);
    close_pipeline(pipeline, &maker);
}

static void test_pipeline_has__what_is_kept(void **state)
{
    struct maker maker;
    struct pipeline *pipeline = pipeline_of(&maker, 1, 0, 1, SIZE_MAX);
    struct asker asker = {0}, next = {0};

    (void)state;
    assert_false(pipeline_has(pipeline, 7));
    ask(pipeline, 7, false, &asker);
    assert_false(pipeline_has(pipeline, 7)); /* in the making */
    finish_all(&maker);
    assert_true(pipeline_has(pipeline, 7));
    assert_false(pipeline_has(pipeline, 7 + 64)); /* the same bucket */
    ask(pipeline, 8, false, &next);
    finish_all(&maker);
    assert_false(pipeline_has(pipeline, 7)); /* dropped */
    assert_true(pipeline_has(pipeline, 8));
    planned_unref(asker.kept);
    planned_unref(next.kept);
    close_pipeline(pipeline, &maker);
}

static void test_pipeline_ask__streams_are_planned_ahead_within_bounds(void **state)
{
    struct maker maker;
    struct pipeline *pipeline = pipeline_of(&maker, 2, 3, 8, SIZE_MAX);
    struct asker stream = {0}, inspection = {0};

    (void)state;
    ask(pipeline, 10, true, &stream);
    assert_int_equal(maker.n_tasks, 2); /* the step itself and one ahead: two makers */
    finish_all(&maker);
    assert_int_equal(maker.n_planned, 4);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(maker.planned[i], 10 + i);
    }
    planned_unref(stream.kept);
    stream = (struct asker){0};
    ask(pipeline, STEPS - 2, true, &stream); /* not past the end */
    finish_all(&maker);
    assert_int_equal(maker.n_planned, 6);
    ask(pipeline, 50, false, &inspection); /* nothing ahead of one who only looks */
    finish_all(&maker);
    assert_int_equal(maker.n_planned, 7);
    planned_unref(stream.kept);
    planned_unref(inspection.kept);
    close_pipeline(pipeline, &maker);
}

/* Plans ahead that would not be kept until they are used are not made. */
static void test_pipeline_ask__large_plans_are_not_made_far_ahead(void **state)
{
    struct maker maker;
    struct pipeline *pipeline = pipeline_of(&maker, 1, 8, 64, SIZE_MAX);
    struct asker asker = {0};
    size_t n_bytes;

    (void)state;
    ask(pipeline, 99, false, &asker);
    finish_all(&maker);
    n_bytes = asker.kept->n_bytes;
    planned_unref(asker.kept);
    close_pipeline(pipeline, &maker);

    pipeline = pipeline_of(&maker, 1, 8, 64, 4 * n_bytes);
    for (uint64_t step = 0; step < 20; step++) {
        asker = (struct asker){0};
        ask(pipeline, step, true, &asker);
        finish_all(&maker);
        assert_int_equal(asker.n_plans, 1);
        planned_unref(asker.kept);
    }
    assert_int_equal(maker.n_planned, 22); /* two ahead, and each step made once */
    close_pipeline(pipeline, &maker);
}

/* Has a step planned; returns what its plan takes. */
static size_t make_step(struct pipeline *pipeline, struct maker *maker, uint64_t step)
{
    struct asker asker = {0};
    size_t n_bytes;

    ask(pipeline, step, false, &asker);
    finish_all(maker);
    assert_int_equal(asker.n_plans, 1);
    n_bytes = asker.kept->n_bytes;
    planned_unref(asker.kept);
    return n_bytes;
}

static size_t count_kept(const struct pipeline *pipeline)
{
    size_t n = 0;

    for (uint64_t step = 0; step < STEPS; step++) {
        n += pipeline_has(pipeline, step);
    }
    return n;
}

/* Six plans' worth for three jobs: whoever has most gives way, so that in the end each has two. */
static void test_pipeline_memory__the_largest_share_gives_way(void **state)
{
    struct pipeline_memory memory = {.max_bytes = SIZE_MAX};
    struct pipeline *pipelines[3];
    struct maker makers[3];
    size_t n_bytes;

    (void)state;
    for (int i = 0; i < 3; i++) {
        pipelines[i] = pipeline_in(&memory, &makers[i], 1, 0, 64, SIZE_MAX);
    }
    n_bytes = make_step(pipelines[0], &makers[0], 0);
    n_bytes += 64; /* later steps' numbers take some bytes more */
    memory.max_bytes = 6 * n_bytes;
    for (uint64_t step = 1; step < 10; step++) {
        (void)make_step(pipelines[0], &makers[0], step);
    }
    assert_int_equal(count_kept(pipelines[0]), 6);
    assert_int_equal(memory.n_holders, 1);
    (void)make_step(pipelines[1], &makers[1], 0);
    assert_int_equal(count_kept(pipelines[0]), 5);
    assert_true(pipeline_has(pipelines[0], 9)); /* the oldest went */
    for (uint64_t step = 1; step < 4; step++) {
        (void)make_step(pipelines[1], &makers[1], step);
        (void)make_step(pipelines[2], &makers[2], step);
    }
    assert_in_range(memory.n_bytes, 5 * n_bytes, 6 * n_bytes);
    for (int i = 0; i < 3; i++) {
        assert_in_range(count_kept(pipelines[i]), 1, 3);
        assert_int_equal(makers[i].n_planned, i == 0 ? 10 : i == 1 ? 4 : 3);
    }
    assert_int_equal(memory.n_holders, 3);
    for (int i = 0; i < 3; i++) {
        close_pipeline(pipelines[i], &makers[i]);
    }
    assert_int_equal(memory.n_bytes, 0);
    assert_int_equal(memory.n_holders, 0);
    assert_null(memory.first);
}

/* The newest plan stays even where it is more than all may take: those who wait for it get it. */
static void test_pipeline_memory__the_newest_plan_stays(void **state)
{
    struct pipeline_memory memory = {.max_bytes = 1};
    struct maker makers[2];
    struct pipeline *one = pipeline_in(&memory, &makers[0], 1, 0, 64, SIZE_MAX);
    struct pipeline *other = pipeline_in(&memory, &makers[1], 1, 0, 64, SIZE_MAX);

    (void)state;
    (void)make_step(one, &makers[0], 3);
    assert_true(pipeline_has(one, 3));
    (void)make_step(other, &makers[1], 4);
    assert_true(pipeline_has(other, 4));
    assert_false(pipeline_has(one, 3));
    (void)make_step(one, &makers[0], 3);
    assert_int_equal(makers[0].n_planned, 2);
    close_pipeline(one, &makers[0]);
    close_pipeline(other, &makers[1]);
}

/* What is made ahead fits into a fair share. */
static void test_pipeline_memory__ahead_within_a_share(void **state)
{
    struct pipeline_memory memory = {.max_bytes = SIZE_MAX};
    struct maker makers[2];
    struct pipeline *one = pipeline_in(&memory, &makers[0], 1, 8, 64, SIZE_MAX);
    struct pipeline *other = pipeline_in(&memory, &makers[1], 1, 8, 64, SIZE_MAX);
    struct asker asker = {0};

    (void)state;
    memory.max_bytes = 8 * (make_step(other, &makers[1], 0) + 64);
    (void)make_step(one, &makers[0], 0);
    ask(one, 1, true, &asker);
    finish_all(&makers[0]);
    assert_int_equal(count_kept(one), 4); /* 0, 1, and two of a share of four */
    planned_unref(asker.kept);
    close_pipeline(one, &makers[0]);
    close_pipeline(other, &makers[1]);
}

static void test_pipeline_ask__who_waits_goes_before_what_is_ahead(void **state)
{
    struct maker maker;
    struct pipeline *pipeline = pipeline_of(&maker, 1, 5, 8, SIZE_MAX);
    struct asker first = {0}, second = {0};

    (void)state;
    ask(pipeline, 10, true, &first);
    ask(pipeline, 40, false, &second);
    assert_int_equal(maker.n_tasks, 1);
    finish_one(&maker);
    finish_one(&maker);
    assert_int_equal(maker.planned[1], 40);
    assert_int_equal(second.n_plans, 1);
    planned_unref(first.kept);
    planned_unref(second.kept);
    close_pipeline(pipeline, &maker);
}

static void test_pipeline_ask__drops_what_was_not_used_for_longest(void **state)
{
    struct maker maker;
    struct pipeline *pipeline = pipeline_of(&maker, 1, 0, 2, SIZE_MAX);

    (void)state;
    for (uint64_t step = 0; step < 2; step++) {
        struct asker asker = {0};

        ask(pipeline, step, false, &asker);
        finish_all(&maker);
        planned_unref(asker.kept);
    }
    for (int i = 0; i < 2; i++) { /* 0 is used again, 2 drives 1 out */
        struct asker again = {0}, next = {0};

        ask(pipeline, 0, false, &again);
        assert_int_equal(again.n_plans, 1);
        ask(pipeline, 2, false, &next);
        finish_all(&maker);
        planned_unref(again.kept);
        planned_unref(next.kept);
    }
    assert_int_equal(maker.n_planned, 3);
    {
        struct asker asker = {0};
        uint8_t digest[SKRULL_DIGEST_SIZE];

        ask(pipeline, 1, false, &asker);
        assert_int_equal(asker.n_plans, 0);                /* made again */
        assert_true(pipeline_digest(pipeline, 1, digest)); /* but its digest was remembered */
        assert_int_equal(digest[0], 1);
        finish_all(&maker);
        assert_int_equal(asker.n_plans, 1);
        planned_unref(asker.kept);
        assert_false(pipeline_digest(pipeline, 99, digest));
    }
    close_pipeline(pipeline, &maker);
}

static void test_pipeline_ask__bytes_are_bounded_but_the_newest_stays(void **state)
{
    struct maker maker;
    struct pipeline *pipeline = pipeline_of(&maker, 1, 0, 8, 1);

    (void)state;
    for (uint64_t step = 0; step < 3; step++) {
        struct asker asker = {0}, again = {0};

        ask(pipeline, step, false, &asker);
        finish_all(&maker);
        ask(pipeline, step, false, &again);
        assert_int_equal(again.n_plans, 1);
        planned_unref(asker.kept);
        planned_unref(again.kept);
    }
    {
        struct asker asker = {0};

        ask(pipeline, 1, false, &asker);
        assert_int_equal(asker.n_plans, 0);
        pipeline_cancel(&asker.wait);
    }
    close_pipeline(pipeline, &maker);
}

static void test_pipeline_ask__failure_is_told_and_tried_again(void **state)
{
    struct maker maker;
    struct pipeline *pipeline = pipeline_of(&maker, 1, 0, 8, SIZE_MAX);
    struct asker asker = {0};

    (void)state;
    maker.fails_at = 5;
    ask(pipeline, 5, true, &asker);
    finish_all(&maker);
    assert_int_equal(asker.n_errors, 1);
    assert_string_equal(asker.message, "step 5 fails");
    maker.fails_at = UINT64_MAX;
    ask(pipeline, 5, true, &asker);
    finish_all(&maker);
    assert_int_equal(asker.n_plans, 1);
    planned_unref(asker.kept);
    close_pipeline(pipeline, &maker);
}

static void test_pipeline_ask__without_memory_for_a_task_fails(void **state)
{
    struct maker maker;
    struct pipeline *pipeline = pipeline_of(&maker, 1, 4, 8, SIZE_MAX);
    struct asker asker = {0};

    (void)state;
    maker.is_out_of_memory = true;
    ask(pipeline, 5, true, &asker);
    assert_int_equal(asker.n_errors, 1);
    maker.is_out_of_memory = false;
    ask(pipeline, 5, true, &asker);
    finish_all(&maker);
    assert_int_equal(asker.n_plans, 1);
    planned_unref(asker.kept);
    close_pipeline(pipeline, &maker);
}

static void test_pipeline_cancel__nothing_is_heard_and_nothing_made(void **state)
{
    struct maker maker;
    struct pipeline *pipeline = pipeline_of(&maker, 1, 0, 8, SIZE_MAX);
    struct asker running = {0}, queued = {0};

    (void)state;
    ask(pipeline, 1, false, &running);
    ask(pipeline, 2, false, &queued);
    pipeline_cancel(&running.wait);
    pipeline_cancel(&queued.wait);
    pipeline_cancel(&queued.wait);
    finish_all(&maker);
    assert_int_equal(maker.n_planned, 1);
    assert_int_equal(running.n_plans + running.n_errors + queued.n_plans + queued.n_errors, 0);
    close_pipeline(pipeline, &maker);
}

/* Another source, which is told apart by its maker. */
static void prepare(struct pipeline *pipeline, struct maker *maker, uint64_t steps)
{
    const struct pipeline_source source = {
        .steps = steps, .plan = plan, .release = release, .arg = maker};

    maker->fails_at = UINT64_MAX;
    assert_int_equal(pipeline_prepare(pipeline, &source, NULL), 0);
}

static void test_pipeline_revise__later_steps_come_from_the_new_source(void **state)
{
    struct maker maker, newer = {0};
    struct pipeline *pipeline = pipeline_of(&maker, 1, 0, 8, SIZE_MAX);
    struct asker kept = {0}, old = {0}, running = {0}, queued = {0}, last = {0};
    uint8_t digest[SKRULL_DIGEST_SIZE];

    (void)state;
    ask(pipeline, 6, false, &old);
    finish_all(&maker);
    ask(pipeline, 9, false, &kept);
    finish_all(&maker);
    assert_true(pipeline_digest(pipeline, 9, digest));
    ask(pipeline, 7, false, &running);
    ask(pipeline, 8, false, &queued);
    prepare(pipeline, &newer, STEPS + 1);
    pipeline_revise(pipeline, 7);
    assert_false(pipeline_digest(pipeline, 9, digest));
    assert_true(pipeline_digest(pipeline, 6, digest));
    assert_int_equal(maker.n_released, 0); /* one of its plans is in the making */
    finish_all(&maker);
    assert_int_equal(maker.n_released, 1);
    assert_int_equal(running.n_plans, 1); /* the new one */
    assert_int_equal(queued.n_plans, 1);
    assert_int_equal(newer.n_planned, 2);
    assert_int_equal(newer.planned[0], 8);
    assert_int_equal(newer.planned[1], 7);
    ask(pipeline, 9, false, &last);
    finish_all(&maker);
    assert_int_equal(newer.n_planned, 3);
    planned_unref(last.kept);
    last = (struct asker){0};
    ask(pipeline, 6, false, &last); /* as it was */
    assert_int_equal(last.n_plans, 1);
    assert_ptr_equal(last.kept, old.kept);
    planned_unref(last.kept);
    planned_unref(old.kept);
    planned_unref(kept.kept);
    planned_unref(running.kept);
    planned_unref(queued.kept);
    close_pipeline(pipeline, &maker);
    assert_int_equal(newer.n_released, 1);
}

/* Nobody waits for a plan of before: it is not made again. */
static void test_pipeline_revise__forgets_what_nobody_waits_for(void **state)
{
    struct maker maker, newer = {0};
    struct pipeline *pipeline = pipeline_of(&maker, 2, 0, 8, SIZE_MAX);
    struct asker asker = {0};

    (void)state;
    ask(pipeline, 7, false, &asker);
    pipeline_cancel(&asker.wait);
    prepare(pipeline, &newer, STEPS);
    pipeline_revise(pipeline, 7);
    finish_all(&maker);
    assert_int_equal(asker.n_plans, 0);
    assert_int_equal(newer.n_planned, 0);
    assert_int_equal(maker.n_released, 1);
    close_pipeline(pipeline, &maker);
    assert_int_equal(newer.n_released, 1);
}

/* Steps that a revision adds are not planned ahead before a stream comes near. */
static void test_pipeline_revise__more_steps(void **state)
{
    struct maker maker, newer = {0};
    struct pipeline *pipeline = pipeline_of(&maker, 2, 3, 8, SIZE_MAX);
    struct asker asker = {0}, later = {0};

    (void)state;
    ask(pipeline, STEPS - 1, true, &asker);
    finish_all(&maker);
    prepare(pipeline, &newer, 2 * STEPS);
    pipeline_revise(pipeline, STEPS);
    ask(pipeline, 3, false, &later);
    finish_all(&maker);
    assert_int_equal(newer.n_planned, 1);
    planned_unref(asker.kept);
    planned_unref(later.kept);
    close_pipeline(pipeline, &maker);
}

static void test_pipeline_drop__goes_on_as_before(void **state)
{
    struct maker maker, newer = {0};
    struct pipeline *pipeline = pipeline_of(&maker, 2, 0, 8, SIZE_MAX);
    struct asker asker = {0};

    (void)state;
    prepare(pipeline, &newer, STEPS);
    pipeline_drop(pipeline);
    assert_int_equal(newer.n_released, 1);
    ask(pipeline, 7, false, &asker);
    finish_all(&maker);
    assert_int_equal(maker.n_planned, 1);
    planned_unref(asker.kept);
    prepare(pipeline, &newer, STEPS); /* closing takes a prepared one with it */
    close_pipeline(pipeline, &maker);
    assert_int_equal(newer.n_released, 2);
}

static void test_pipeline_close__waiters_hear_of_it_and_makers_may_finish(void **state)
{
    struct maker maker;
    struct pipeline *pipeline = pipeline_of(&maker, 1, 4, 8, SIZE_MAX);
    struct skrull_error err = {.code = SKRULL_ERR_NOT_FOUND, .message = "deleted"};
    struct asker running = {0}, queued = {0};

    (void)state;
    ask(pipeline, 1, true, &running);
    ask(pipeline, 2, true, &queued);
    pipeline_close(pipeline, &err);
    assert_string_equal(running.message, "deleted");
    assert_string_equal(queued.message, "deleted");
    assert_int_equal(maker.n_released, 0); /* a plan is in the making */
    finish_all(&maker);
    assert_int_equal(maker.n_released, 1);
    assert_int_equal(running.n_plans + queued.n_plans, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_ask__one_plan_for_all_who_ask),
        cmocka_unit_test(test_pipeline_ask__kept_plans_come_at_once),
        cmocka_unit_test(test_pipeline_has__what_is_kept),
        cmocka_unit_test(test_pipeline_ask__streams_are_planned_ahead_within_bounds),
        cmocka_unit_test(test_pipeline_ask__large_plans_are_not_made_far_ahead),
        cmocka_unit_test(test_pipeline_memory__the_largest_share_gives_way),
        cmocka_unit_test(test_pipeline_memory__the_newest_plan_stays),
        cmocka_unit_test(test_pipeline_memory__ahead_within_a_share),
        cmocka_unit_test(test_pipeline_ask__who_waits_goes_before_what_is_ahead),
        cmocka_unit_test(test_pipeline_ask__drops_what_was_not_used_for_longest),
        cmocka_unit_test(test_pipeline_ask__bytes_are_bounded_but_the_newest_stays),
        cmocka_unit_test(test_pipeline_ask__failure_is_told_and_tried_again),
        cmocka_unit_test(test_pipeline_ask__without_memory_for_a_task_fails),
        cmocka_unit_test(test_pipeline_cancel__nothing_is_heard_and_nothing_made),
        cmocka_unit_test(test_pipeline_revise__later_steps_come_from_the_new_source),
        cmocka_unit_test(test_pipeline_revise__forgets_what_nobody_waits_for),
        cmocka_unit_test(test_pipeline_revise__more_steps),
        cmocka_unit_test(test_pipeline_drop__goes_on_as_before),
        cmocka_unit_test(test_pipeline_close__waiters_hear_of_it_and_makers_may_finish),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

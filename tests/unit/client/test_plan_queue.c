/* Tests of plan_queue.c. */
#include "plan_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arena.h"

static struct skrull_plan *plan_of_step(uint64_t step)
{
    struct arena *arena = arena_new(4096);
    struct skrull_plan *plan = ARENA_NEW(arena, struct skrull_plan);

    plan->arena = arena;
    plan->step = step;
    return plan;
}

static void test_plan_queue__keeps_order_around_the_ring(void **state)
{
    struct plan_queue queue;
    uint64_t pushed = 0, popped = 0;

    (void)state;
    assert_int_equal(plan_queue_init(&queue, 3, NULL), 0);
    for (int round = 0; round < 7; round++) {
        while (!plan_queue_is_full(&queue)) {
            plan_queue_push(&queue, plan_of_step(pushed++));
        }
        for (int i = 0; i < 2; i++) {
            struct skrull_plan *plan = plan_queue_pop(&queue);

            assert_int_equal(plan->step, popped++);
            skrull_plan_free(plan);
        }
    }
    assert_int_equal(pushed, popped + 1);
    plan_queue_deinit(&queue);
}

static void test_plan_queue_pop__empty(void **state)
{
    struct plan_queue queue;

    (void)state;
    assert_int_equal(plan_queue_init(&queue, 1, NULL), 0);
    assert_null(plan_queue_pop(&queue));
    plan_queue_push(&queue, plan_of_step(9));
    assert_true(plan_queue_is_full(&queue));
    skrull_plan_free(plan_queue_pop(&queue));
    assert_null(plan_queue_pop(&queue));
    plan_queue_deinit(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_queue__keeps_order_around_the_ring),
        cmocka_unit_test(test_plan_queue_pop__empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The path to a plan's end goes through the ranks that others waited for. */
#include "explain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* <1, 2>: in micro-batch 0 rank 0 works alone; in 1 both share a sequence, and rank 0 waits. */
static struct skrull_segment segments[] = {
    {.sample = 1, .group_first = 0, .group_size = 1},
    {.sample = 2, .group_first = 0, .group_size = 2},
    {.sample = 2, .group_first = 0, .group_size = 2},
};
static struct skrull_micro_batch micro_batches[] = {
    {.first_segment = 0, .n_segments = 1, .estimate = {.iteration_ns = 10, .comp_ns = 10}},
    {.first_segment = 1,
     .n_segments = 1,
     .estimate = {.iteration_ns = 30, .comp_ns = 20, .idle_ns = 10}},
    {.first_segment = 1, .n_segments = 0, .dummy = true},
    {.first_segment = 2,
     .n_segments = 1,
     .estimate = {.iteration_ns = 40, .comp_ns = 35, .comm_ns = 5}},
};
static struct skrull_rank ranks[] = {
    {.data_rank = 0, .n_micro_batches = 2, .first_micro_batch = 0},
    {.data_rank = 1, .n_micro_batches = 2, .first_micro_batch = 2},
};
static const struct skrull_plan plan = {.dp = 1,
                                        .cp = 2,
                                        .estimate = {.iteration_ns = 40},
                                        .n_ranks = 2,
                                        .n_micro_batches = 4,
                                        .n_segments = 3,
                                        .ranks = ranks,
                                        .micro_batches = micro_batches,
                                        .segments = segments};

static void test_explain_path__crosses_to_the_rank_that_was_waited_for(void **state)
{
    struct explain_step steps[2];

    (void)state;
    assert_int_equal(explain_path(&plan, steps), 2);
    assert_int_equal(steps[1].i_rank, 1);
    assert_true(steps[1].was_waiting);
    assert_int_equal(steps[0].i_rank, 1); /* had nothing to do, but that is where it came from */
    assert_false(steps[0].was_waiting);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explain_path__crosses_to_the_rank_that_was_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Timers, signals and tasks. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "loop/loop.h"

struct run {
    struct loop *loop;
    struct loop_timer *timer;
    struct loop_task *task;
    struct loop_signal *handler;
    int n_timers, n_tasks, n_signals;
};

static int setup(void **state)
{
    static struct run run;

    run = (struct run){0};
    *state = &run;
    return loop_new(1, &run.loop, NULL);
}

static int teardown(void **state)
{
    struct run *run = *state;

    loop_timer_free(run->timer);
    loop_task_free(run->task);
    loop_signal_free(run->handler);
    loop_free(run->loop);
    return 0;
}

static void on_timer(void *arg)
{
    struct run *run = arg;

    run->n_timers++;
    if (run->n_timers == 3) {
        loop_timer_stop(run->timer);
        loop_stop(run->loop);
    }
}

static void test_loop_timer__repeats_until_stopped(void **state)
{
    struct run *run = *state;

    assert_int_equal(loop_timer_new(run->loop, on_timer, run, &run->timer, NULL), 0);
    loop_timer_start(run->timer, 0, 1);
    loop_run(run->loop);
    assert_int_equal(run->n_timers, 3);
}

static void on_task(void *arg)
{
    struct run *run = arg;

    run->n_tasks++;
    if (run->n_tasks < 4) {
        loop_task_schedule(run->task);
    } else {
        loop_stop(run->loop);
    }
}

static void test_loop_task__runs_once_a_schedule(void **state)
{
    struct run *run = *state;

    assert_int_equal(loop_task_new(run->loop, on_task, run, &run->task, NULL), 0);
    loop_task_schedule(run->task);
    loop_task_schedule(run->task);
    loop_run(run->loop);
    assert_int_equal(run->n_tasks, 4);
}

/* A timer that is due has its turn although the task never rests. */
static void on_restless(void *arg)
{
    struct run *run = arg;

    loop_task_schedule(run->task);
}

static void test_loop_task__leaves_others_their_turn(void **state)
{
    struct run *run = *state;

    run->n_timers = 2;
    assert_int_equal(loop_task_new(run->loop, on_restless, run, &run->task, NULL), 0);
    assert_int_equal(loop_timer_new(run->loop, on_timer, run, &run->timer, NULL), 0);
    loop_task_schedule(run->task);
    loop_timer_start(run->timer, 1, 0);
    loop_run(run->loop);
    assert_int_equal(run->n_timers, 3);
}

static void on_signal(void *arg)
{
    struct run *run = arg;

    run->n_signals++;
    loop_stop(run->loop);
}

static void test_loop_signal__is_delivered_on_the_loop(void **state)
{
    struct run *run = *state;

    assert_int_equal(loop_signal_new(run->loop, SIGUSR1, on_signal, run, &run->handler, NULL), 0);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_int_equal(run->n_signals, 0);
    loop_run(run->loop);
    assert_int_equal(run->n_signals, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_loop_timer__repeats_until_stopped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_loop_task__runs_once_a_schedule, setup, teardown),
        cmocka_unit_test_setup_teardown(test_loop_task__leaves_others_their_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(test_loop_signal__is_delivered_on_the_loop, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

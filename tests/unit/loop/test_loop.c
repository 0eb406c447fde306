/* The loop: work on the pool, and that stopping loses none. */
#include "loop/loop.h"

#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct run {
    struct loop *loop;
    pthread_t here;
    int n_works, n_dones, n_wanted;
    pthread_mutex_t lock;
};

static void work(void *arg)
{
    struct run *run = arg;

    assert(!pthread_equal(pthread_self(), run->here));
    (void)pthread_mutex_lock(&run->lock);
    run->n_works++;
    (void)pthread_mutex_unlock(&run->lock);
}

static void done(void *arg)
{
    struct run *run = arg;

    assert_true(pthread_equal(pthread_self(), run->here));
    run->n_dones++;
    if (run->n_dones == run->n_wanted) {
        loop_stop(run->loop);
    }
}

static void test_loop_work__runs_there_and_is_done_here(void **state)
{
    struct run run = {.here = pthread_self(), .n_wanted = 100};

    (void)state;
    (void)pthread_mutex_init(&run.lock, NULL);
    assert_int_equal(loop_new(2, &run.loop, NULL), 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(loop_work(run.loop, work, done, &run), 0);
    }
    loop_run(run.loop);
    assert_int_equal(run.n_works, 100);
    assert_int_equal(run.n_dones, 100);
    loop_free(run.loop);
}

static void test_loop_free__waits_for_work(void **state)
{
    struct run run = {.here = pthread_self()};

    (void)state;
    (void)pthread_mutex_init(&run.lock, NULL);
    assert_int_equal(loop_new(2, &run.loop, NULL), 0);
    assert_int_equal(loop_work(run.loop, work, done, &run), 0);
    loop_free(run.loop);
    assert_int_equal(run.n_dones, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_work__runs_there_and_is_done_here),
        cmocka_unit_test(test_loop_free__waits_for_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

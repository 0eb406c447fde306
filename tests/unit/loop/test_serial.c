/* The serial queue: order, threads, and that freeing it finishes all. */
#include "loop/serial.h"

#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#define N_ITEMS 50

struct item {
    struct serial_item item;
    struct run *run;
    int number;
};

struct run {
    struct loop *loop;
    struct serial *serial;
    pthread_t here;
    struct item items[N_ITEMS], more;
    int worked[N_ITEMS + 1], n_worked;
    int n_done;
    bool is_inside;
};

static void work(void *arg)
{
    struct item *item = arg;
    struct run *run = item->run;

    assert(!pthread_equal(pthread_self(), run->here));
    assert(!run->is_inside); /* one at a time */
    run->is_inside = true;
    run->worked[run->n_worked++] = item->number;
    run->is_inside = false;
}

static void done(void *arg)
{
    struct item *item = arg;
    struct run *run = item->run;

    assert_true(pthread_equal(pthread_self(), run->here));
    assert_int_equal(run->n_done, item->number);
    run->n_done++;
    if (run->n_done == N_ITEMS) {
        loop_stop(run->loop);
    }
}

static void push(struct run *run, struct item *item, int number)
{
    *item = (struct item){
        .item = {.work = work, .done = done, .arg = item}, .run = run, .number = number};
    serial_push(run->serial, &item->item);
}

static void test_serial_push__one_after_another_in_order(void **state)
{
    struct run run = {.here = pthread_self()};

    (void)state;
    assert_int_equal(loop_new(1, &run.loop, NULL), 0);
    assert_int_equal(serial_new(run.loop, &run.serial, NULL), 0);
    for (int i = 0; i < N_ITEMS; i++) {
        push(&run, &run.items[i], i);
    }
    loop_run(run.loop);
    assert_int_equal(run.n_done, N_ITEMS);
    for (int i = 0; i < N_ITEMS; i++) {
        assert_int_equal(run.worked[i], i);
    }
    serial_free(run.serial);
    loop_free(run.loop);
}

static void done_and_push(void *arg)
{
    struct item *item = arg;

    done(arg);
    push(item->run, &item->run->more, N_ITEMS);
}

static void test_serial_free__finishes_all_and_what_these_push(void **state)
{
    struct run run = {.here = pthread_self()};

    (void)state;
    assert_int_equal(loop_new(1, &run.loop, NULL), 0);
    assert_int_equal(serial_new(run.loop, &run.serial, NULL), 0);
    for (int i = 0; i < N_ITEMS - 1; i++) {
        push(&run, &run.items[i], i);
    }
    run.items[N_ITEMS - 1] =
        (struct item){.item = {.work = work, .done = done_and_push, .arg = &run.items[N_ITEMS - 1]},
                      .run = &run,
                      .number = N_ITEMS - 1};
    serial_push(run.serial, &run.items[N_ITEMS - 1].item);
    serial_free(run.serial);
    assert_int_equal(run.n_done, N_ITEMS + 1);
    loop_free(run.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_serial_push__one_after_another_in_order),
        cmocka_unit_test(test_serial_free__finishes_all_and_what_these_push),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

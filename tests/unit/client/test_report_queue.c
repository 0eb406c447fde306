/* Tests of report_queue.c. */
#include "report_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void push(struct report_queue *queue, uint64_t step)
{
    const struct queued_report report = {.step = step};

    assert_int_equal(report_queue_push(queue, &report, NULL), 0);
}

static void test_report_queue__grows_while_it_wraps(void **state)
{
    struct report_queue queue = {0};
    uint64_t pushed = 0, dropped = 0;

    (void)state;
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 50; i++) {
            push(&queue, pushed++);
        }
        report_queue_drop(&queue, 30);
        dropped += 30;
        for (size_t i = 0; i < queue.n_reports; i++) {
            assert_int_equal(report_queue_at(&queue, i)->step, dropped + i);
        }
    }
    assert_int_equal(queue.n_reports, pushed - dropped);
    report_queue_deinit(&queue);
}

static void test_report_queue_push__owns_the_times(void **state)
{
    struct report_queue queue = {0};
    struct skrull_micro_batch_times times[3] = {
        {.compute_busy_ns = 1}, {.compute_wait_ns = 2}, {.exchange_wait_ns = 3}};
    const struct queued_report report = {.step = 1, .micro_batches = times, .n_micro_batches = 3};

    (void)state;
    assert_int_equal(report_queue_push(&queue, &report, NULL), 0);
    assert_int_equal(report_queue_push(&queue, &report, NULL), 0);
    times[2].exchange_wait_ns = 99; /* the caller's own again */
    assert_int_equal(report_queue_at(&queue, 1)->n_micro_batches, 3);
    assert_int_equal(report_queue_at(&queue, 1)->micro_batches[2].exchange_wait_ns, 3);
    report_queue_drop(&queue, 1);
    assert_int_equal(report_queue_at(&queue, 0)->micro_batches[1].compute_wait_ns, 2);
    report_queue_deinit(&queue); /* leaks are the sanitizer's to find */
}

static void test_report_queue_push__refuses_at_the_limit(void **state)
{
    struct report_queue queue = {0};
    const struct queued_report report = {.step = 1};
    struct skrull_error err;

    (void)state;
    for (uint64_t i = 0; i < REPORT_QUEUE_MAX; i++) {
        push(&queue, i);
    }
    assert_int_equal(report_queue_push(&queue, &report, &err), SKRULL_ERR_RESOURCE_EXHAUSTED);
    assert_int_equal(queue.n_reports, REPORT_QUEUE_MAX);
    report_queue_drop(&queue, 1);
    assert_int_equal(report_queue_push(&queue, &report, &err), 0);
    report_queue_deinit(&queue);
}

static void test_report_queue_drop__nothing_of_nothing(void **state)
{
    struct report_queue queue = {0};

    (void)state;
    report_queue_drop(&queue, 0);
    assert_int_equal(queue.n_reports, 0);
    report_queue_deinit(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_queue__grows_while_it_wraps),
        cmocka_unit_test(test_report_queue_push__owns_the_times),
        cmocka_unit_test(test_report_queue_push__refuses_at_the_limit),
        cmocka_unit_test(test_report_queue_drop__nothing_of_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

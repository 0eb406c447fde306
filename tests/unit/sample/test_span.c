/* Step arithmetic against counting one step after the other. */
#include "sample/span.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_SPANS 4

/* The plain way: the next batch begins where the last ended, unless that was the epoch's end. */
struct walk {
    uint64_t epoch, place, sample;
};

static struct span_batch walk_step(struct walk *walk, uint64_t n, uint32_t batch,
                                   enum skrull_last_batch last)
{
    struct span_batch at = {.n = batch};
    uint64_t left = n - walk->place;

    if (left == 0 || (last == SKRULL_LAST_BATCH_DROP && left < batch)) {
        walk->epoch++;
        walk->place = 0;
        left = n;
    }
    at.epoch = walk->epoch;
    at.place = walk->place;
    at.first_sample = walk->sample;
    if (last == SKRULL_LAST_BATCH_KEEP && left < batch) {
        at.n = (uint32_t)left;
    }
    walk->place += left < batch ? left : batch;
    walk->sample += batch;
    return at;
}

static void check_walk(uint64_t n, const uint32_t *batches, const uint64_t *first_steps,
                       uint32_t n_spans, enum skrull_last_batch last)
{
    struct span spans[MAX_SPANS];
    struct walk walk = {0};
    uint32_t s = 0;

    for (uint32_t i = 0; i < n_spans; i++) {
        assert_int_equal(span_init(i > 0 ? &spans[i - 1] : NULL, first_steps[i], batches[i], n,
                                   last, &spans[i], NULL),
                         0);
    }
    for (uint64_t step = 0; step < first_steps[n_spans - 1] + 50; step++) {
        struct span_batch expected, got;

        while (s + 1 < n_spans && first_steps[s + 1] <= step) {
            if (last == SKRULL_LAST_BATCH_DROP && n - walk.place < batches[s]) {
                walk.place = n; /* that epoch was over */
            }
            s++;
        }
        expected = walk_step(&walk, n, batches[s], last);
        got = span_at(&spans[s], step);
        if (got.epoch != expected.epoch || got.place != expected.place || got.n != expected.n ||
            got.first_sample != expected.first_sample) {
            fail_msg("n %u, last batch %d, step %u: %u/%u +%u, expected %u/%u +%u", (unsigned)n,
                     (int)last, (unsigned)step, (unsigned)got.epoch, (unsigned)got.place, got.n,
                     (unsigned)expected.epoch, (unsigned)expected.place, expected.n);
        }
    }
}

static void test_span_at__as_one_counts(void **state)
{
    static const enum skrull_last_batch lasts[] = {SKRULL_LAST_BATCH_DROP, SKRULL_LAST_BATCH_KEEP,
                                                   SKRULL_LAST_BATCH_WRAP};
    uint64_t random = 5;

    (void)state;
    for (uint32_t round = 0; round < 3000; round++) {
        uint32_t batches[MAX_SPANS], n_spans = 1 + round % MAX_SPANS;
        uint64_t first_steps[MAX_SPANS] = {0}, n;
        enum skrull_last_batch last = lasts[round % 3];

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        n = 1 + (random >> 33) % 40;
        for (uint32_t i = 0; i < n_spans; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            /* Larger than the epoch too, where that gives steps at all. */
            batches[i] =
                (uint32_t)(1 + (random >> 33) % (last == SKRULL_LAST_BATCH_DROP ? n : n + 9));
            if (i > 0) {
                first_steps[i] =
                    first_steps[i - 1] + (random >> 50) % 30; /* none in between, too */
            }
        }
        check_walk(n, batches, first_steps, n_spans, last);
    }
}

static void test_span_end_of_epochs__is_the_first_step_after_them(void **state)
{
    static const enum skrull_last_batch lasts[] = {SKRULL_LAST_BATCH_DROP, SKRULL_LAST_BATCH_KEEP,
                                                   SKRULL_LAST_BATCH_WRAP};

    (void)state;
    for (uint64_t first_step = 0; first_step < 12; first_step++) {
        for (size_t l = 0; l < 3; l++) {
            struct span before, span;
            uint64_t end = 99;

            assert_int_equal(span_init(NULL, 0, 4, 10, lasts[l], &before, NULL), 0);
            assert_int_equal(span_init(&before, first_step, 3, 10, lasts[l], &span, NULL), 0);
            for (uint64_t epochs = 0; epochs < 6; epochs++) {
                assert_int_equal(span_end_of_epochs(&span, epochs, &end), 0);
                if (end == first_step) { /* over before the span began */
                    assert_true(span.first_epoch >= epochs || span.head_steps == 0);
                    continue;
                }
                assert_int_equal(span_at(&span, end - 1).epoch, epochs - 1);
                assert_int_equal(span_at(&span, end).epoch, epochs);
                assert_int_equal(span_at(&span, end).place, 0);
            }
        }
    }
}

static void test_span_init__no_step(void **state)
{
    struct skrull_error err = {0};
    struct span before, span;

    (void)state;
    assert_int_equal(span_init(NULL, 0, 10, 9, SKRULL_LAST_BATCH_DROP, &span, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "9 sequences are fewer than batch.global 10"));
    assert_int_equal(span_init(NULL, 0, 10, 9, SKRULL_LAST_BATCH_KEEP, &span, NULL), 0);
    assert_int_equal(span_at(&span, 3).n, 9);
    assert_int_equal(span_init(NULL, 0, 10, 9, SKRULL_LAST_BATCH_WRAP, &span, NULL), 0);
    assert_int_equal(span_at(&span, 3).n, 10);
    /* A later span may not be stuck either. */
    assert_int_equal(span_init(NULL, 0, 4, 9, SKRULL_LAST_BATCH_DROP, &before, NULL), 0);
    assert_int_equal(span_init(&before, 1, 10, 9, SKRULL_LAST_BATCH_DROP, &span, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
}

static void test_span__an_epoch_without_an_end(void **state)
{
    struct span before, span;
    struct span_batch at;
    uint64_t samples;

    (void)state;
    assert_int_equal(span_init(NULL, 0, 16, 0, SKRULL_LAST_BATCH_KEEP, &before, NULL), 0);
    assert_int_equal(span_init(&before, 1000, 10, 0, SKRULL_LAST_BATCH_KEEP, &span, NULL), 0);
    at = span_at(&span, 1000003);
    assert_int_equal(at.epoch, 0);
    assert_int_equal(at.n, 10);
    assert_int_equal(at.place, 16000 + 999003 * UINT64_C(10));
    assert_int_equal(at.first_sample, at.place);
    assert_int_equal(span_samples(&span, 1000003, &samples), 0);
    assert_int_equal(samples, at.place);
}

static void test_span_samples__overflow(void **state)
{
    struct span before, span;
    uint64_t samples = 99;

    (void)state;
    assert_int_equal(span_init(NULL, 0, 2, 2, SKRULL_LAST_BATCH_DROP, &span, NULL), 0);
    assert_int_equal(span_samples(&span, UINT64_MAX / 2, &samples), 0);
    assert_true(samples == UINT64_MAX - 1);
    assert_int_equal(span_samples(&span, UINT64_MAX / 2 + 1, &samples), -1);
    assert_int_equal(span_end_of_epochs(&span, UINT64_MAX, &samples), 0);
    before = span;
    assert_int_equal(span_init(&before, UINT64_MAX, 1, 2, SKRULL_LAST_BATCH_DROP, &span, NULL),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(span_init(NULL, 0, 1, 2, SKRULL_LAST_BATCH_DROP, &span, NULL), 0);
    assert_int_equal(span_end_of_epochs(&span, UINT64_MAX, &samples), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_span_at__as_one_counts),
        cmocka_unit_test(test_span_end_of_epochs__is_the_first_step_after_them),
        cmocka_unit_test(test_span_init__no_step),
        cmocka_unit_test(test_span__an_epoch_without_an_end),
        cmocka_unit_test(test_span_samples__overflow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

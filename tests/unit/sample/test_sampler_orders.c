/* What a sampler gives beside plain epochs: short and wrapped last batches, the order by length,
 * mixtures, and batches that change on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sample/sample.h"

#define MAX_BATCH 64

static struct sampler *make(const struct sampler_options *options)
{
    struct skrull_error err = {0};
    struct sampler *sampler = NULL;

    if (sampler_new(options, &sampler, &err)) {
        fail_msg("%s", err.message);
    }
    return sampler;
}

/* The `i`-th row of the list: data sets one after the other. */
static struct sample_row row_at(const struct sample_rows *sets, uint64_t i)
{
    struct sample_row row = {0};

    while (i >= sets[row.dataset].count) {
        i -= sets[row.dataset++].count;
    }
    row.row = i;
    return row;
}

static void assert_row(const struct sample_row *got, struct sample_row expected)
{
    assert_int_equal(got->dataset, expected.dataset);
    assert_int_equal(got->row, expected.row);
}

static void test_sampler__keep(void **state)
{
    static const struct sample_rows sets[] = {{.count = 4, .n_kept = 4}, {.count = 3, .n_kept = 3}};
    static const struct sample_span by_3 = {0, 3}, by_10 = {0, 10};
    struct sampler_options options = {.order = SKRULL_ORDER_SEQUENTIAL,
                                      .last_batch = SKRULL_LAST_BATCH_KEEP,
                                      .epochs = 2,
                                      .spans = &by_3,
                                      .n_spans = 1,
                                      .rows = sets,
                                      .n_datasets = 2};
    struct sampler *sampler = make(&options);
    struct sample_row rows[10];
    struct sample_batch batch;

    (void)state;
    assert_int_equal(sampler_steps(sampler), 6);
    assert_int_equal(sampler_samples(sampler), 18); /* at full size */
    for (uint64_t step = 0; step < 6; step++) {
        assert_int_equal(sampler_step(sampler, step, rows, &batch, NULL), 0);
        assert_int_equal(batch.epoch, step / 3);
        assert_int_equal(batch.first_sample, step * 3);
        assert_int_equal(batch.n_rows, step % 3 == 2 ? 1 : 3);
        for (uint32_t i = 0; i < batch.n_rows; i++) {
            assert_row(&rows[i], row_at(sets, step % 3 * 3 + i));
        }
    }
    sampler_free(sampler);
    options.spans = &by_10; /* more than there are */
    sampler = make(&options);
    assert_int_equal(sampler_steps(sampler), 2);
    assert_int_equal(sampler_step(sampler, 1, rows, &batch, NULL), 0);
    assert_int_equal(batch.n_rows, 7);
    assert_int_equal(batch.first_sample, 10);
    sampler_free(sampler);
}

static void test_sampler__wrap(void **state)
{
    static const struct sample_rows sets[] = {{.count = 4, .n_kept = 4}, {.count = 3, .n_kept = 3}};
    static const struct sample_span spans[] = {{0, 3}, {0, 20}};

    (void)state;
    for (size_t k = 0; k < 2; k++) { /* 20: the epoch nearly thrice in a batch */
        const uint32_t size = spans[k].batch;
        const uint64_t epoch_steps = k == 0 ? 3 : 1;
        struct sampler_options options = {.order = SKRULL_ORDER_SEQUENTIAL,
                                          .last_batch = SKRULL_LAST_BATCH_WRAP,
                                          .epochs = 2,
                                          .spans = &spans[k],
                                          .n_spans = 1,
                                          .rows = sets,
                                          .n_datasets = 2};
        struct sampler *sampler = make(&options);
        struct sample_row rows[20];
        struct sample_batch batch;

        assert_int_equal(sampler_steps(sampler), 2 * epoch_steps);
        for (uint64_t step = 0; step < 2 * epoch_steps; step++) {
            assert_int_equal(sampler_step(sampler, step, rows, &batch, NULL), 0);
            assert_int_equal(batch.epoch, step / epoch_steps);
            assert_int_equal(batch.n_rows, size);
            for (uint32_t i = 0; i < size; i++) {
                assert_row(&rows[i], row_at(sets, (step % epoch_steps * size + i) % 7));
            }
        }
        sampler_free(sampler);
    }
}

/* With keep and wrap every sequence comes, in every epoch, whatever the batch. */
static void test_sampler__keep_and_wrap_give_each_sequence(void **state)
{
    static const struct sample_rows set = {.count = 50, .n_kept = 50};

    (void)state;
    for (uint32_t size = 1; size <= 60; size++) {
        for (int last = SKRULL_LAST_BATCH_KEEP; last <= (int)SKRULL_LAST_BATCH_WRAP; last++) {
            const struct sample_span span = {0, size};
            struct sampler_options options = {.seed = size,
                                              .order = SKRULL_ORDER_SHUFFLE,
                                              .last_batch = (enum skrull_last_batch)last,
                                              .epochs = 2,
                                              .spans = &span,
                                              .n_spans = 1,
                                              .rows = &set,
                                              .n_datasets = 1};
            struct sampler *sampler = make(&options);
            uint32_t seen[2][50] = {{0}}, total = 0;
            struct sample_row rows[60];
            struct sample_batch batch;

            assert_int_equal(sampler_steps(sampler), 2 * ((50 + size - 1) / size));
            for (uint64_t step = 0; step < sampler_steps(sampler); step++) {
                assert_int_equal(sampler_step(sampler, step, rows, &batch, NULL), 0);
                total += batch.n_rows;
                for (uint32_t i = 0; i < batch.n_rows; i++) {
                    seen[batch.epoch][rows[i].row]++;
                }
            }
            for (size_t i = 0; i < 50; i++) {
                assert_true(seen[0][i] >= 1 && seen[1][i] >= 1);
                assert_true(last != (int)SKRULL_LAST_BATCH_KEEP || seen[0][i] == 1);
            }
            assert_true(last != (int)SKRULL_LAST_BATCH_KEEP || total == 100);
            sampler_free(sampler);
        }
    }
}

static void test_sampler__sorted(void **state)
{
    static const uint32_t first[] = {50, 7, 70000, 7}, second[] = {7, 200000, 8};
    static const uint64_t kept[] = {0xd}; /* not the 7 of row 1 */
    static const struct sample_rows sets[] = {
        {.count = 4, .n_kept = 3, .kept = kept, .lengths = first, .limit = UINT32_MAX},
        {.count = 3, .n_kept = 3, .lengths = second, .limit = 70000}};
    static const struct sample_row expected[] = {{0, 3}, {1, 0}, {1, 2}, {0, 0}, {0, 2}, {1, 1}};
    static const struct sample_span span = {0, 2};
    struct sampler_options options = {.seed = 42,
                                      .order = SKRULL_ORDER_SORTED,
                                      .last_batch = SKRULL_LAST_BATCH_DROP,
                                      .epochs = 2,
                                      .spans = &span,
                                      .n_spans = 1,
                                      .rows = sets,
                                      .n_datasets = 2};
    struct sampler *sampler = make(&options);
    struct sample_row rows[2];
    struct sample_batch batch;

    (void)state;
    for (uint64_t step = 0; step < 6; step++) { /* every epoch alike */
        assert_int_equal(sampler_step(sampler, step, rows, &batch, NULL), 0);
        assert_int_equal(batch.epoch, step / 3);
        assert_row(&rows[0], expected[step % 3 * 2]);
        assert_row(&rows[1], expected[step % 3 * 2 + 1]);
    }
    sampler_free(sampler);
}

/* Three data sets of a mixture, one of which ends some hundred times. */
#define N_MIXED 3
struct mixed {
    struct sample_rows sets[N_MIXED];
    uint64_t kept[2];
    uint32_t lengths[N_MIXED][1000];
};

static void mixed_init(struct mixed *mixed)
{
    static const uint64_t counts[N_MIXED] = {1000, 100, 9};
    static const double weights[N_MIXED] = {5, 3, 2};

    memset(mixed, 0, sizeof(*mixed));
    for (size_t d = 0; d < N_MIXED; d++) {
        mixed->sets[d] = (struct sample_rows){.count = counts[d],
                                              .n_kept = counts[d],
                                              .weight = weights[d],
                                              .lengths = mixed->lengths[d],
                                              .limit = UINT32_MAX};
        for (size_t i = 0; i < counts[d]; i++) {
            mixed->lengths[d][i] = (uint32_t)(1 + i * 7919 % 31);
        }
    }
    mixed->kept[0] = ~(UINT64_C(1) << 5); /* rows 5 and 64 of the second are dropped */
    mixed->kept[1] = (UINT64_C(1) << 36) - 2;
    mixed->sets[1].kept = mixed->kept;
    mixed->sets[1].n_kept = 98;
}

/* Exact shares in each block of 10,000, and each data set once before any of it comes again. */
static void check_mixture(const struct mixed *mixed, enum skrull_order order, uint32_t size)
{
    static const uint64_t shares[N_MIXED] = {5000, 3000, 2000};
    const struct sample_span span = {0, size};
    struct sampler_options options = {.seed = 9,
                                      .order = order,
                                      .last_batch = SKRULL_LAST_BATCH_DROP,
                                      .steps = 30000 / size,
                                      .spans = &span,
                                      .n_spans = 1,
                                      .rows = mixed->sets,
                                      .n_datasets = N_MIXED};
    struct sampler *sampler = make(&options);
    uint64_t counts[N_MIXED] = {0}, n = 0;
    static uint64_t seen[N_MIXED][1000];
    struct sample_row rows[MAX_BATCH];
    struct sample_batch batch;

    memset(seen, 0, sizeof(seen));
    for (uint64_t step = 0; step < sampler_steps(sampler); step++) {
        assert_int_equal(sampler_step(sampler, step, rows, &batch, NULL), 0);
        assert_int_equal(batch.epoch, 0);
        assert_int_equal(batch.n_rows, size);
        assert_int_equal(batch.first_sample, step * size);
        for (uint32_t i = 0; i < size; i++) {
            uint32_t d = rows[i].dataset;
            const struct sample_rows *set = &mixed->sets[d];

            assert_true(!set->kept || (set->kept[rows[i].row / 64] >> rows[i].row % 64 & 1));
            /* As often as the data set ended, or not at all since. */
            assert_int_equal(seen[d][rows[i].row], counts[d] / set->n_kept);
            seen[d][rows[i].row]++;
            counts[d]++;
            if (++n % 10000 == 0) {
                for (size_t k = 0; k < N_MIXED; k++) {
                    assert_int_equal(counts[k], n / 10000 * shares[k]);
                }
            }
        }
    }
    assert_int_equal(n, 30000);
    sampler_free(sampler);
}

static void test_sampler__mixture_has_exact_shares(void **state)
{
    static const uint32_t sizes[] = {1, 3, 8, 30, 60};
    static struct mixed mixed;

    (void)state;
    mixed_init(&mixed);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        check_mixture(&mixed, SKRULL_ORDER_SHUFFLE, sizes[s]);
        check_mixture(&mixed, SKRULL_ORDER_SEQUENTIAL, sizes[s]);
        check_mixture(&mixed, SKRULL_ORDER_SORTED, sizes[s]);
    }
}

/* Each data set in its own order: ascending by length, ties by row. */
static void test_sampler__mixture_sorted(void **state)
{
    static const struct sample_span span = {0, 50};
    struct sample_row last[N_MIXED] = {{0, 0}}, rows[50];
    bool has_last[N_MIXED] = {false};
    struct sample_batch batch;
    struct sampler *sampler;
    static struct mixed mixed;
    uint64_t counts[N_MIXED] = {0};

    (void)state;
    mixed_init(&mixed);
    sampler = make(&(struct sampler_options){.order = SKRULL_ORDER_SORTED,
                                             .last_batch = SKRULL_LAST_BATCH_DROP,
                                             .steps = 100,
                                             .spans = &span,
                                             .n_spans = 1,
                                             .rows = mixed.sets,
                                             .n_datasets = N_MIXED});
    for (uint64_t step = 0; step < 100; step++) {
        assert_int_equal(sampler_step(sampler, step, rows, &batch, NULL), 0);
        for (size_t i = 0; i < 50; i++) {
            uint32_t d = rows[i].dataset;
            uint32_t length = mixed.lengths[d][rows[i].row];

            if (has_last[d] && counts[d] % mixed.sets[d].n_kept != 0) {
                uint32_t before = mixed.lengths[d][last[d].row];

                assert_true(before < length || (before == length && last[d].row < rows[i].row));
            }
            last[d] = rows[i];
            has_last[d] = true;
            counts[d]++;
        }
    }
    sampler_free(sampler);
}

/* Two data sets of one size do not walk in step, nor does one in its next round. */
static void test_sampler__mixture_has_an_order_for_each(void **state)
{
    static const struct sample_rows sets[] = {{.count = 200, .n_kept = 200, .weight = 1},
                                              {.count = 200, .n_kept = 200, .weight = 1}};
    static const struct sample_span span = {0, 40};
    struct sampler *sampler = make(&(struct sampler_options){.seed = 1,
                                                             .order = SKRULL_ORDER_SHUFFLE,
                                                             .last_batch = SKRULL_LAST_BATCH_DROP,
                                                             .steps = 20,
                                                             .spans = &span,
                                                             .n_spans = 1,
                                                             .rows = sets,
                                                             .n_datasets = 2});
    static uint64_t drawn[2][400];
    uint64_t n[2] = {0};
    struct sample_row rows[40];
    struct sample_batch batch;
    size_t alike = 0, again = 0;

    (void)state;
    for (uint64_t step = 0; step < 20; step++) {
        assert_int_equal(sampler_step(sampler, step, rows, &batch, NULL), 0);
        for (size_t i = 0; i < 40; i++) {
            drawn[rows[i].dataset][n[rows[i].dataset]++] = rows[i].row;
        }
    }
    for (size_t i = 0; i < 200; i++) {
        alike += drawn[0][i] == drawn[1][i];
        again += drawn[0][i] == drawn[0][200 + i];
    }
    assert_in_range(alike, 0, 12); /* Poisson of mean 1 */
    assert_in_range(again, 0, 12);
    sampler_free(sampler);
}

/* The same list of sequences comes, however batches cut it: no place is lost, none comes twice. */
static void test_sampler__changing_batches_only_cut_the_order(void **state)
{
    static const struct sample_rows set = {.count = 100, .n_kept = 100},
                                    mixed = {.count = 100, .n_kept = 100, .weight = 1};
    static const struct sample_span plain = {0, 1};
    static const struct sample_span cut[] = {{0, 7}, {5, 3}, {5, 10}, {9, 1}, {20, 14}};

    (void)state;
    for (int is_mixture = 0; is_mixture < 2; is_mixture++) {
        struct sampler_options options = {.seed = 3,
                                          .order = SKRULL_ORDER_SHUFFLE,
                                          .last_batch = SKRULL_LAST_BATCH_KEEP,
                                          .steps = 300,
                                          .spans = &plain,
                                          .n_spans = 1,
                                          .rows = is_mixture ? &mixed : &set,
                                          .n_datasets = 1};
        struct sampler *one = make(&options), *many;
        struct sample_row single, rows[MAX_BATCH];
        struct sample_batch batch, alone;
        uint64_t place = 0, sample = 0;

        options.spans = cut;
        options.n_spans = 5;
        options.steps = 32;
        many = make(&options);
        assert_int_equal(sampler_batch_size(many, 4), 7);
        assert_int_equal(sampler_batch_size(many, 5), 10);
        assert_int_equal(sampler_batch_size(many, 20), 14);
        for (uint64_t step = 0; step < 32; step++) {
            assert_int_equal(sampler_step(many, step, rows, &batch, NULL), 0);
            assert_int_equal(batch.first_sample, sample);
            for (uint32_t i = 0; i < batch.n_rows; i++) {
                assert_int_equal(sampler_step(one, place++, &single, &alone, NULL), 0);
                assert_row(&rows[i], single);
                assert_int_equal(alone.epoch, batch.epoch);
            }
            sample += sampler_batch_size(many, step);
        }
        assert_true(place > 200);
        assert_int_equal(sampler_samples(many), sample);
        sampler_free(one);
        sampler_free(many);
    }
}

static void test_sampler_new__refuses(void **state)
{
    static const struct sample_rows mixed[] = {{.count = 9, .n_kept = 9, .weight = 1},
                                               {.count = 9, .n_kept = 9}};
    static const struct sample_rows empty[] = {{.count = 9, .n_kept = 9, .weight = 1},
                                               {.count = 0, .n_kept = 0, .weight = 1}};
    static const struct sample_rows none = {.count = 0, .n_kept = 0};
    static const struct sample_rows many = {.count = (UINT64_C(1) << 32) + 1,
                                            .n_kept = (UINT64_C(1) << 32) + 1};
    static const struct sample_span spans[] = {{0, 4}, {10, 5}};
    static const struct {
        struct sampler_options options;
        const char *message;
    } cases[] = {
        {{.steps = 5, .rows = mixed, .n_datasets = 2}, "data[1].weight: all data sets have a"},
        {{.epochs = 5, .rows = mixed, .n_datasets = 1}, "epochs: a mixture"},
        {{.steps = 5, .rows = empty, .n_datasets = 2}, "data[1].weight: 5000 of 10000"},
        {{.epochs = 1, .rows = &none, .n_datasets = 1}, "no step: 0 sequences"},
        {{.steps = 9, .rows = mixed, .n_datasets = 1, .n_spans = 2}, "steps: 9 are fewer than"},
        {{.steps = 9, .rows = &many, .n_datasets = 1, .order = SKRULL_ORDER_SORTED},
         "order: sorted takes at most 2^32 sequences"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sampler_options options = cases[i].options;
        struct sampler *sampler = NULL;
        struct skrull_error err = {0};

        options.order = options.order ? options.order : SKRULL_ORDER_SHUFFLE;
        options.last_batch = SKRULL_LAST_BATCH_WRAP;
        options.spans = spans;
        options.n_spans = options.n_spans ? options.n_spans : 1;
        assert_int_equal(sampler_new(&options, &sampler, &err), SKRULL_ERR_INVALID_ARGUMENT);
        assert_null(sampler);
        if (!strstr(err.message, cases[i].message)) {
            fail_msg("case %zu: %s", i, err.message);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sampler__keep),
        cmocka_unit_test(test_sampler__wrap),
        cmocka_unit_test(test_sampler__keep_and_wrap_give_each_sequence),
        cmocka_unit_test(test_sampler__sorted),
        cmocka_unit_test(test_sampler__mixture_has_exact_shares),
        cmocka_unit_test(test_sampler__mixture_sorted),
        cmocka_unit_test(test_sampler__mixture_has_an_order_for_each),
        cmocka_unit_test(test_sampler__changing_batches_only_cut_the_order),
        cmocka_unit_test(test_sampler_new__refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

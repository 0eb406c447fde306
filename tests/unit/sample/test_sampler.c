/* Steps to rows: exactly once an epoch, by random access, over data sets and dropped rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sample/sample.h"

#define MAX_ROWS 512
#define MAX_DATASETS 4

/* All steps in batches of n, for .spans. */
#define BATCHES_OF(n) ((const struct sample_span[]){{0, (n)}})

/* Some data sets, their rows kept at random or all. */
struct data {
    struct sample_rows rows[MAX_DATASETS];
    uint64_t kept[MAX_DATASETS][MAX_ROWS / 64 + 1];
    uint32_t n_datasets;
    uint64_t n_sequences;
};

static void add_dataset(struct data *data, uint64_t count, uint32_t keep_of_8)
{
    struct sample_rows *rows = &data->rows[data->n_datasets];
    uint64_t *kept = data->kept[data->n_datasets++];
    uint64_t random = count + data->n_datasets;

    *rows = (struct sample_rows){.count = count, .n_kept = count};
    if (keep_of_8 < 8) {
        memset(kept, 0, sizeof(data->kept[0]));
        rows->n_kept = 0;
        rows->kept = kept;
        for (uint64_t row = 0; row < count; row++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            if (random >> 61 < keep_of_8) {
                kept[row / 64] |= UINT64_C(1) << row % 64;
                rows->n_kept++;
            }
        }
    }
    data->n_sequences += rows->n_kept;
}

static int is_kept(const struct data *data, const struct sample_row *at)
{
    const struct sample_rows *rows = &data->rows[at->dataset];

    return at->row < rows->count && (!rows->kept || (rows->kept[at->row / 64] >> at->row % 64 & 1));
}

static struct sampler *make(const struct data *data, enum skrull_order order, uint32_t batch,
                            uint64_t epochs)
{
    const struct sample_span span = {0, batch};
    struct sampler_options options = {
        .seed = 42,
        .order = order,
        .last_batch = SKRULL_LAST_BATCH_DROP,
        .spans = &span,
        .n_spans = 1,
        .epochs = epochs,
        .rows = data->rows,
        .n_datasets = data->n_datasets,
    };
    struct sampler *sampler = NULL;

    assert_int_equal(sampler_new(&options, &sampler, NULL), 0);
    return sampler;
}

/* Each row of an epoch is kept, and none comes twice; the last, partial batch is left out. */
static void check_epochs(const struct data *data, enum skrull_order order, uint32_t batch)
{
    const uint64_t epochs = 3, epoch_steps = data->n_sequences / batch;
    struct sampler *sampler = make(data, order, batch, epochs);
    static struct sample_row rows[MAX_ROWS * MAX_DATASETS];

    assert_int_equal(sampler_steps(sampler), epochs * epoch_steps);
    assert_int_equal(sampler_epoch_sequences(sampler), data->n_sequences);
    for (uint64_t epoch = 0; epoch < epochs; epoch++) {
        unsigned char seen[MAX_DATASETS][MAX_ROWS] = {{0}};

        for (uint64_t s = 0; s < epoch_steps; s++) {
            struct sample_batch got = {.epoch = 99};

            assert_int_equal(sampler_step(sampler, epoch * epoch_steps + s, rows, &got, NULL), 0);
            assert_int_equal(got.epoch, epoch);
            assert_int_equal(got.n_rows, batch);
            assert_int_equal(got.first_sample, (epoch * epoch_steps + s) * batch);
            for (uint32_t i = 0; i < batch; i++) {
                assert_true(rows[i].dataset < data->n_datasets);
                assert_true(is_kept(data, &rows[i]));
                assert_int_equal(seen[rows[i].dataset][rows[i].row]++, 0);
            }
        }
    }
    sampler_free(sampler);
}

static void test_sampler__once_an_epoch(void **state)
{
    static const uint64_t counts[] = {1, 2, 3, 7, 64, 100, 257, 511};
    static const uint32_t batches[] = {1, 2, 3, 16, 64, 100, 256};

    (void)state;
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        for (uint32_t keep = 8; keep >= 4; keep -= 2) {
            struct data data = {0};

            add_dataset(&data, counts[c], keep);
            for (size_t b = 0; b < sizeof(batches) / sizeof(batches[0]); b++) {
                if (batches[b] <= data.n_sequences) {
                    check_epochs(&data, SKRULL_ORDER_SHUFFLE, batches[b]);
                    check_epochs(&data, SKRULL_ORDER_SEQUENTIAL, batches[b]);
                }
            }
        }
    }
}

static void test_sampler__once_an_epoch_over_data_sets(void **state)
{
    static const uint64_t counts[][MAX_DATASETS] = {
        {100, 1, 200, 3}, {0, 5, 0, 60}, {64, 64, 64, 64}, {1, 1, 1, 1}, {500, 0, 0, 0}};

    (void)state;
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        for (uint32_t keep = 8; keep >= 5; keep -= 3) {
            struct data data = {0};

            for (size_t d = 0; d < MAX_DATASETS; d++) {
                add_dataset(&data, counts[c][d], d % 2 ? 8 : keep);
            }
            for (uint32_t batch = 1; batch <= data.n_sequences; batch = batch * 3 + 1) {
                check_epochs(&data, SKRULL_ORDER_SHUFFLE, batch);
                check_epochs(&data, SKRULL_ORDER_SEQUENTIAL, batch);
            }
        }
    }
}

static void test_sampler__sequential_is_the_files_order(void **state)
{
    static const uint64_t kept[] = {0x2d}; /* rows 0, 2, 3, 5 */
    static const struct sample_rows sets[] = {{.count = 3, .n_kept = 3},
                                              {.count = 6, .n_kept = 4, .kept = kept},
                                              {.count = 2, .n_kept = 2}};
    static const struct sample_row expected[] = {{0, 0}, {0, 1}, {0, 2}, {1, 0},
                                                 {1, 2}, {1, 3}, {1, 5}, {2, 0}};
    struct sampler_options options = {.order = SKRULL_ORDER_SEQUENTIAL,
                                      .last_batch = SKRULL_LAST_BATCH_DROP,
                                      .spans = BATCHES_OF(4),
                                      .n_spans = 1,
                                      .steps = 5,
                                      .rows = sets,
                                      .n_datasets = 3};
    struct sampler *sampler = NULL;

    (void)state;
    assert_int_equal(sampler_new(&options, &sampler, NULL), 0);
    assert_int_equal(sampler_steps(sampler), 5);
    for (uint64_t step = 0; step < 5; step++) { /* nine sequences: one is left out, each epoch */
        struct sample_row rows[4];
        struct sample_batch batch;

        assert_int_equal(sampler_step(sampler, step, rows, &batch, NULL), 0);
        assert_int_equal(batch.epoch, step / 2);
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(rows[i].dataset, expected[step % 2 * 4 + i].dataset);
            assert_int_equal(rows[i].row, expected[step % 2 * 4 + i].row);
        }
    }
    sampler_free(sampler);
}

static void test_sampler__any_order_of_asking_gives_the_same(void **state)
{
    struct data data = {0};
    struct sampler *a, *b;
    struct sample_row there[16], back[16];
    struct sample_batch epoch_there, epoch_back;
    uint64_t steps;

    (void)state;
    add_dataset(&data, 300, 6);
    add_dataset(&data, 200, 8);
    a = make(&data, SKRULL_ORDER_SHUFFLE, 16, 4);
    b = make(&data, SKRULL_ORDER_SHUFFLE, 16, 4);
    steps = sampler_steps(a);
    for (uint64_t i = 0; i < steps; i++) {
        uint64_t step = i * 37 % steps; /* steps is no multiple of 37 */

        assert_int_equal(sampler_step(a, step, there, &epoch_there, NULL), 0);
        assert_int_equal(sampler_step(b, step, back, &epoch_back, NULL), 0);
        assert_int_equal(sampler_step(b, (step + 5) % steps, back, &epoch_back, NULL), 0);
        assert_int_equal(sampler_step(b, step, back, &epoch_back, NULL), 0);
        assert_int_equal(epoch_there.epoch, epoch_back.epoch);
        for (size_t k = 0; k < 16; k++) {
            assert_int_equal(there[k].dataset, back[k].dataset);
            assert_int_equal(there[k].row, back[k].row);
        }
    }
    assert_int_not_equal(steps % 37, 0);
    sampler_free(a);
    sampler_free(b);
}

/* The same rows in the same places, whatever the batch: step and place count, no state does. */
static void test_sampler__batch_size_only_cuts_the_order(void **state)
{
    struct data data = {0};
    struct sampler *one, *many;
    struct sample_row single, rows[10];
    struct sample_batch epoch;

    (void)state;
    add_dataset(&data, 120, 8);
    one = make(&data, SKRULL_ORDER_SHUFFLE, 1, 1);
    many = make(&data, SKRULL_ORDER_SHUFFLE, 10, 1);
    for (uint64_t step = 0; step < 12; step++) {
        assert_int_equal(sampler_step(many, step, rows, &epoch, NULL), 0);
        for (uint64_t i = 0; i < 10; i++) {
            assert_int_equal(sampler_step(one, step * 10 + i, &single, &epoch, NULL), 0);
            assert_int_equal(single.row, rows[i].row);
        }
    }
    sampler_free(one);
    sampler_free(many);
}

static void test_sampler__epochs_and_seeds_differ(void **state)
{
    struct sample_rows set = {.count = 256, .n_kept = 256};
    static uint64_t first[4][256];
    struct sample_batch epoch;

    (void)state;
    for (uint64_t k = 0; k < 4; k++) { /* seed k / 2, epoch k % 2 */
        struct sampler_options options = {.seed = k / 2,
                                          .order = SKRULL_ORDER_SHUFFLE,
                                          .last_batch = SKRULL_LAST_BATCH_DROP,
                                          .spans = BATCHES_OF(256),
                                          .n_spans = 1,
                                          .epochs = 2,
                                          .rows = &set,
                                          .n_datasets = 1};
        struct sampler *sampler = NULL;
        static struct sample_row rows[256];

        assert_int_equal(sampler_new(&options, &sampler, NULL), 0);
        assert_int_equal(sampler_step(sampler, k % 2, rows, &epoch, NULL), 0);
        assert_int_equal(epoch.epoch, k % 2);
        for (size_t i = 0; i < 256; i++) {
            first[k][i] = rows[i].row;
        }
        sampler_free(sampler);
    }
    for (size_t a = 0; a < 4; a++) {
        for (size_t b = a + 1; b < 4; b++) {
            size_t same = 0;

            for (size_t i = 0; i < 256; i++) {
                same += first[a][i] == first[b][i];
            }
            assert_in_range(same, 0, 12); /* Poisson of mean 1 */
        }
    }
}

static void test_sampler_step__past_the_end(void **state)
{
    struct data data = {0};
    struct sampler *sampler;
    struct sample_row rows[4];
    struct skrull_error err = {0};
    struct sample_batch epoch = {.epoch = 99};

    (void)state;
    add_dataset(&data, 10, 8);
    sampler = make(&data, SKRULL_ORDER_SHUFFLE, 4, 3);
    assert_int_equal(sampler_step(sampler, 5, rows, &epoch, &err), 0);
    assert_int_equal(sampler_step(sampler, 6, rows, &epoch, &err), SKRULL_ERR_OUT_OF_RANGE);
    assert_string_equal(err.message, "step 6: the job has 6, from 0");
    assert_int_equal(sampler_step(sampler, UINT64_MAX, rows, &epoch, &err),
                     SKRULL_ERR_OUT_OF_RANGE);
    assert_int_equal(epoch.epoch, 2);
    sampler_free(sampler);
}

static const uint64_t past_the_end[] = {0x1ff};
static const struct sample_rows nine = {.count = 9, .n_kept = 9, .kept = NULL},
                                ten_billion = {
                                    .count = 10000000000, .n_kept = 10000000000, .kept = NULL};
static const struct sample_rows lying = {.count = 9, .n_kept = 8, .kept = past_the_end},
                                past = {.count = 8, .n_kept = 8, .kept = past_the_end};
static const struct sample_rows huge[] = {{.count = UINT64_MAX, .n_kept = UINT64_MAX},
                                          {.count = 1, .n_kept = 1}};
static const struct {
    struct sampler_options options;
    int code;
    const char *message;
} refused[] = {
    {{.order = SKRULL_ORDER_SHUFFLE,
      .last_batch = SKRULL_LAST_BATCH_DROP,
      .spans = BATCHES_OF(10),
      .n_spans = 1,
      .epochs = 1,
      .rows = &nine,
      .n_datasets = 1},
     SKRULL_ERR_INVALID_ARGUMENT,
     "no step: 9 sequences are fewer than batch.global 10 and the last, partial batch is "
     "dropped; "
     "lower batch.global or add data"},
    {{.order = SKRULL_ORDER_SHUFFLE,
      .last_batch = SKRULL_LAST_BATCH_DROP,
      .spans = BATCHES_OF(1),
      .n_spans = 1,
      .steps = 1,
      .n_datasets = 0},
     SKRULL_ERR_INVALID_ARGUMENT,
     "no step: no data sets"},
    {{.order = SKRULL_ORDER_SHUFFLE,
      .last_batch = 4,
      .spans = BATCHES_OF(1),
      .n_spans = 1,
      .epochs = 1,
      .rows = &nine,
      .n_datasets = 1},
     SKRULL_ERR_INVALID_ARGUMENT,
     "last_batch: 4 is none"},
    {{.last_batch = SKRULL_LAST_BATCH_DROP,
      .spans = BATCHES_OF(1),
      .n_spans = 1,
      .epochs = 1,
      .rows = &nine,
      .n_datasets = 1},
     SKRULL_ERR_INVALID_ARGUMENT,
     "order: 0 is none"},
    {{.order = SKRULL_ORDER_SHUFFLE,
      .last_batch = SKRULL_LAST_BATCH_DROP,
      .spans = BATCHES_OF(0),
      .n_spans = 1,
      .epochs = 1,
      .rows = &nine,
      .n_datasets = 1},
     SKRULL_ERR_INVALID_ARGUMENT,
     "batch.global: 0 sequences"},
    {{.order = SKRULL_ORDER_SHUFFLE,
      .last_batch = SKRULL_LAST_BATCH_DROP,
      .spans = BATCHES_OF(1),
      .n_spans = 1,
      .rows = &nine,
      .n_datasets = 1},
     SKRULL_ERR_INVALID_ARGUMENT,
     "epochs: 0 and steps: 0; give one"},
    {{.order = SKRULL_ORDER_SHUFFLE,
      .last_batch = SKRULL_LAST_BATCH_DROP,
      .spans = BATCHES_OF(1),
      .n_spans = 1,
      .epochs = 1,
      .steps = 1,
      .rows = &nine,
      .n_datasets = 1},
     SKRULL_ERR_INVALID_ARGUMENT,
     "epochs: 1 and steps: 1; give one"},
    {{.order = SKRULL_ORDER_SHUFFLE,
      .last_batch = SKRULL_LAST_BATCH_DROP,
      .spans = BATCHES_OF(1),
      .n_spans = 1,
      .epochs = 10000000000,
      .rows = &ten_billion,
      .n_datasets = 1},
     SKRULL_ERR_INVALID_ARGUMENT,
     "epochs: 10000000000 with 10000000000 steps an epoch"},
    {{.order = SKRULL_ORDER_SHUFFLE,
      .last_batch = SKRULL_LAST_BATCH_DROP,
      .spans = BATCHES_OF(2),
      .n_spans = 1,
      .steps = UINT64_C(1) << 63,
      .rows = &nine,
      .n_datasets = 1},
     SKRULL_ERR_INVALID_ARGUMENT,
     "steps: 9223372036854775808 with 4 steps an epoch"},
    {{.order = SKRULL_ORDER_SHUFFLE,
      .last_batch = SKRULL_LAST_BATCH_DROP,
      .spans = BATCHES_OF(1),
      .n_spans = 1,
      .epochs = 1,
      .rows = huge,
      .n_datasets = 2},
     SKRULL_ERR_INVALID_ARGUMENT,
     "more than 2^64 sequences"},
    {{.order = SKRULL_ORDER_SHUFFLE,
      .last_batch = SKRULL_LAST_BATCH_DROP,
      .spans = BATCHES_OF(1),
      .n_spans = 1,
      .epochs = 1,
      .rows = &lying,
      .n_datasets = 1},
     SKRULL_ERR_INTERNAL,
     "data[0]: 9 rows kept, 8 said"},
    {{.order = SKRULL_ORDER_SHUFFLE,
      .last_batch = SKRULL_LAST_BATCH_DROP,
      .spans = BATCHES_OF(1),
      .n_spans = 1,
      .epochs = 1,
      .rows = &past,
      .n_datasets = 1},
     SKRULL_ERR_INTERNAL,
     "data[0]: rows kept past the last"},
};

static void test_sampler_new__refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct sampler *sampler = NULL;
        struct skrull_error err = {0};
        int status = sampler_new(&refused[i].options, &sampler, &err);

        print_message("# case %zu: %s\n", i, err.message);
        assert_int_equal(status, refused[i].code);
        assert_null(sampler);
        assert_non_null(strstr(err.message, refused[i].message));
    }
}

/* Of the most steps that are allowed, the last can be had. */
static void test_sampler__the_last_of_very_many_steps(void **state)
{
    struct sampler_options options = {.order = SKRULL_ORDER_SHUFFLE,
                                      .last_batch = SKRULL_LAST_BATCH_DROP,
                                      .spans = BATCHES_OF(1),
                                      .n_spans = 1,
                                      .steps = UINT64_MAX,
                                      .rows = &nine,
                                      .n_datasets = 1};
    struct sampler *sampler = NULL;
    struct sample_row row;
    struct sample_batch epoch;

    (void)state;
    assert_int_equal(sampler_new(&options, &sampler, NULL), 0);
    assert_int_equal(sampler_step(sampler, UINT64_MAX - 1, &row, &epoch, NULL), 0);
    assert_true(epoch.epoch == (UINT64_MAX - 1) / 9);
    assert_in_range(row.row, 0, 8);
    sampler_free(sampler);
    sampler_free(NULL);
}

/* Plans hang on these: a change is a new planner version. */
static void test_sampler__golden(void **state)
{
    static const uint64_t expected[2][8] = {
        {39864, 49144, 61798, 49525, 21252, 10698, 42747, 15079},
        {64739, 47886, 74048, 8596, 87940, 45318, 86648, 82604},
    };
    static const struct sample_rows set = {.count = 100000, .n_kept = 100000, .kept = NULL};
    struct sampler_options options = {.seed = 42,
                                      .order = SKRULL_ORDER_SHUFFLE,
                                      .last_batch = SKRULL_LAST_BATCH_DROP,
                                      .spans = BATCHES_OF(8),
                                      .n_spans = 1,
                                      .epochs = 2,
                                      .rows = &set,
                                      .n_datasets = 1};
    struct sampler *sampler = NULL;

    (void)state;
    assert_int_equal(sampler_new(&options, &sampler, NULL), 0);
    for (uint64_t e = 0; e < 2; e++) {
        struct sample_row rows[8];
        struct sample_batch epoch;

        assert_int_equal(sampler_step(sampler, e * 12500, rows, &epoch, NULL), 0);
        assert_int_equal(epoch.epoch, e);
        for (size_t i = 0; i < 8; i++) {
            assert_int_equal(rows[i].row, expected[e][i]);
        }
    }
    sampler_free(sampler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sampler__once_an_epoch),
        cmocka_unit_test(test_sampler__once_an_epoch_over_data_sets),
        cmocka_unit_test(test_sampler__sequential_is_the_files_order),
        cmocka_unit_test(test_sampler__any_order_of_asking_gives_the_same),
        cmocka_unit_test(test_sampler__batch_size_only_cuts_the_order),
        cmocka_unit_test(test_sampler__epochs_and_seeds_differ),
        cmocka_unit_test(test_sampler_step__past_the_end),
        cmocka_unit_test(test_sampler_new__refuses),
        cmocka_unit_test(test_sampler__the_last_of_very_many_steps),
        cmocka_unit_test(test_sampler__golden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

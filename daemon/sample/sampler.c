/*
 * Steps to rows. The kept rows of all data sets form one list, numbered through: places. An epoch
 * is an order of it: the identity, a table by length, or a keyed permutation; its steps take batch
 * after batch of it (span.c). With weights each data set has its own order and endless epochs, and
 * a mixture says whose turn it is. So any step is found without those before it, and nothing
 * changes when ranks do. An immutable object: thread-safe.
 */
#include "sample/sample.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "ckd.h"
#include "sample/mixture.h"
#include "sample/permutation.h"
#include "sample/select.h"
#include "sample/sorted.h"
#include "sample/span.h"

struct dataset {
    uint64_t end;             /* kept rows of this and all data sets before */
    struct bit_select select; /* of the kept rows; words NULL: all are kept */
};

struct sampler {
    uint64_t seed;
    enum skrull_order order;
    uint64_t n_sequences; /* in an epoch */
    uint64_t steps, samples;
    struct span *spans; /* [n_spans]; owned */
    uint32_t n_spans;
    struct mixture *mixture; /* owned; NULL: no weights */
    uint32_t *sorted; /* [n_sequences]; owned; of SORTED: places, in a mixture of each data set */
    uint32_t n_datasets;
    struct dataset datasets[]; /* [n_datasets] */
};

static int check_options(const struct sampler_options *options, struct skrull_error *err)
{
    if (options->order < SKRULL_ORDER_SHUFFLE || options->order > SKRULL_ORDER_SORTED) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "order: %d is none; use shuffle, sequential or sorted",
                                (int)options->order);
    }
    if (options->last_batch < SKRULL_LAST_BATCH_DROP ||
        options->last_batch > SKRULL_LAST_BATCH_WRAP) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "last_batch: %d is none; use drop, keep or wrap",
                                (int)options->last_batch);
    }
    if ((options->epochs == 0) == (options->steps == 0)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "epochs: %" PRIu64 " and steps: %" PRIu64
                                "; give one of them, above 0",
                                options->epochs, options->steps);
    }
    if (options->n_datasets == 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "no step: no data sets");
    }
    for (uint32_t i = 0; i < options->n_spans; i++) {
        if (options->spans[i].batch == 0) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "batch.global: 0 sequences; at least 1");
        }
    }
    return 0;
}

/* All data sets have a weight, or none has. */
static int check_weights(const struct sampler_options *options, bool *ret_is_mixture,
                         struct skrull_error *err)
{
    bool is_mixture = options->rows[0].weight > 0;

    for (uint32_t i = 1; i < options->n_datasets; i++) {
        if ((options->rows[i].weight > 0) != is_mixture) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "data[%" PRIu32 "].weight: all data sets have a weight, or "
                                    "none has",
                                    i);
        }
    }
    if (is_mixture && options->steps == 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "epochs: a mixture by data[].weight has none; give steps");
    }
    if (is_mixture && options->n_datasets > MIXTURE_MAX_DATASETS) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "data: %" PRIu32 " data sets are too many to mix, at most %d",
                                options->n_datasets, MIXTURE_MAX_DATASETS);
    }
    *ret_is_mixture = is_mixture;
    return 0;
}

static int no_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "sampler: out of memory");
}

/* One bitmap that does not say what its row count says is the caller's mistake, but not worth a
 * crash. */
static int add_rows(struct sampler *sampler, const struct sample_rows *rows,
                    struct skrull_error *err)
{
    struct dataset *dataset = &sampler->datasets[sampler->n_datasets];
    uint64_t n_kept = rows->count;

    if (rows->kept) {
        if (rows->count % 64 != 0 && rows->kept[rows->count / 64] >> (rows->count % 64) != 0) {
            return skrull_error_set(err, SKRULL_ERR_INTERNAL,
                                    "data[%" PRIu32 "]: rows kept past the last",
                                    sampler->n_datasets);
        }
        if (bit_select_init(&dataset->select, rows->kept, rows->count) != 0) {
            return no_memory(err);
        }
        n_kept = dataset->select.n_set;
    }
    sampler->n_datasets++; /* from here on sampler_free knows of it */
    if (n_kept != rows->n_kept) {
        return skrull_error_set(err, SKRULL_ERR_INTERNAL,
                                "data[%" PRIu32 "]: %" PRIu64 " rows kept, %" PRIu64 " said",
                                sampler->n_datasets - 1, n_kept, rows->n_kept);
    }
    if (ckd_add(&sampler->n_sequences, sampler->n_sequences, n_kept)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "data: more than 2^64 sequences in all");
    }
    dataset->end = sampler->n_sequences;
    return 0;
}

/* The place of a data set's first row. */
static uint64_t begin_of(const struct sampler *sampler, uint32_t dataset)
{
    return dataset > 0 ? sampler->datasets[dataset - 1].end : 0;
}

static int mix(struct sampler *sampler, const struct sample_rows *rows, struct skrull_error *err)
{
    sampler->mixture = mixture_new(rows, sampler->n_datasets);
    if (!sampler->mixture) {
        return no_memory(err);
    }
    for (uint32_t i = 0; i < sampler->n_datasets; i++) {
        if (sampler->mixture->shares[i] > 0 && rows[i].n_kept == 0) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "data[%" PRIu32 "].weight: %" PRIu32
                                    " of 10000 samples are to come from a data set without "
                                    "sequences; leave it out",
                                    i, sampler->mixture->shares[i]);
        }
    }
    return 0;
}

/* The table by length: of the whole list, or in a mixture of each data set. */
static int sort(struct sampler *sampler, const struct sample_rows *rows, struct skrull_error *err)
{
    const uint64_t most = UINT64_C(1) << 32;
    size_t bytes;
    int status = 0;

    if (sampler->n_sequences > most) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "order: sorted takes at most 2^32 sequences, there are %" PRIu64,
                                sampler->n_sequences);
    }
    if (ckd_mul(&bytes, sampler->n_sequences, sizeof(*sampler->sorted))) {
        return no_memory(err);
    }
    sampler->sorted = malloc(bytes ? bytes : 1);
    if (!sampler->sorted) {
        return no_memory(err);
    }
    if (!sampler->mixture) {
        status = sorted_places(rows, sampler->n_datasets, sampler->n_sequences, sampler->sorted);
    }
    for (uint32_t i = 0; sampler->mixture && status == 0 && i < sampler->n_datasets; i++) {
        status = sorted_places(&rows[i], 1, rows[i].n_kept, sampler->sorted + begin_of(sampler, i));
    }
    return status < 0 ? no_memory(err) : 0;
}

/* Spans of batch sizes, one after the other. */
static int add_spans(struct sampler *sampler, const struct sampler_options *options,
                     struct skrull_error *err)
{
    uint64_t n_sequences = sampler->mixture ? 0 : sampler->n_sequences;

    if (n_sequences == 0 && !sampler->mixture) {
        return skrull_error_because(
            err, SKRULL_ERR_INVALID_ARGUMENT, SKRULL_REASON_TOO_FEW_SEQUENCES, 0,
            "no step: 0 sequences, so no batch of %" PRIu32 "; add data", options->spans[0].batch);
    }
    sampler->spans = calloc(options->n_spans, sizeof(*sampler->spans));
    if (!sampler->spans) {
        return no_memory(err);
    }
    for (uint32_t i = 0; i < options->n_spans; i++) {
        const struct span *before = i > 0 ? &sampler->spans[i - 1] : NULL;
        int status;

        assert(options->spans[i].first_step >= (before ? before->first_step : 0));
        status = span_init(before, options->spans[i].first_step, options->spans[i].batch,
                           n_sequences, options->last_batch, &sampler->spans[i], err);
        if (status < 0) {
            return status;
        }
    }
    sampler->n_spans = options->n_spans;
    return 0;
}

static int count_steps(struct sampler *sampler, const struct sampler_options *options,
                       struct skrull_error *err)
{
    const struct span *last = &sampler->spans[sampler->n_spans - 1];

    sampler->steps = options->steps;
    if (options->steps > 0 && options->steps < last->first_step) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "steps: %" PRIu64 " are fewer than the %" PRIu64
                                " before the batch changes",
                                options->steps, last->first_step);
    }
    if ((options->steps == 0 && span_end_of_epochs(last, options->epochs, &sampler->steps) < 0) ||
        span_samples(last, sampler->steps, &sampler->samples) < 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %" PRIu64 " with %" PRIu64 " steps an epoch of %" PRIu32
                                " sequences are more than 2^64 samples; lower it",
                                options->steps ? "steps" : "epochs",
                                options->steps ? options->steps : options->epochs,
                                last->epoch_steps, last->batch);
    }
    return 0;
}

static int fill(struct sampler *sampler, const struct sampler_options *options,
                struct skrull_error *err)
{
    bool is_mixture = false;
    int status = check_weights(options, &is_mixture, err);

    sampler->seed = options->seed;
    sampler->order = options->order;
    for (uint32_t i = 0; status == 0 && i < options->n_datasets; i++) {
        status = add_rows(sampler, &options->rows[i], err);
    }
    if (status == 0 && is_mixture) {
        status = mix(sampler, options->rows, err);
    }
    if (status == 0) {
        status = add_spans(sampler, options, err);
    }
    if (status == 0) {
        status = count_steps(sampler, options, err);
    }
    if (status == 0 && options->order == SKRULL_ORDER_SORTED) {
        status = sort(sampler, options->rows, err);
    }
    return status;
}

int sampler_new(const struct sampler_options *options, struct sampler **ret_sampler,
                struct skrull_error *err)
{
    struct sampler *sampler;
    size_t bytes;
    int status = check_options(options, err);

    assert(options->n_spans >= 1 && options->spans[0].first_step == 0);
    if (status < 0) {
        return status;
    }
    sampler = ckd_mul(&bytes, (size_t)options->n_datasets, sizeof(struct dataset)) ||
                      ckd_add(&bytes, bytes, sizeof(*sampler))
                  ? NULL
                  : calloc(1, bytes);
    if (!sampler) {
        return no_memory(err);
    }
    status = fill(sampler, options, err);
    if (status < 0) {
        sampler_free(sampler);
        return status;
    }
    *ret_sampler = sampler;
    return 0;
}

void sampler_free(struct sampler *sampler)
{
    if (sampler) {
        for (uint32_t i = 0; i < sampler->n_datasets; i++) {
            bit_select_deinit(&sampler->datasets[i].select);
        }
        free(sampler->spans);
        mixture_free(sampler->mixture);
        free(sampler->sorted);
        free(sampler);
    }
}

uint64_t sampler_steps(const struct sampler *sampler)
{
    return sampler->steps;
}

uint64_t sampler_samples(const struct sampler *sampler)
{
    return sampler->samples;
}

uint64_t sampler_epoch_sequences(const struct sampler *sampler)
{
    return sampler->n_sequences;
}

/* The last span that begins at the step or before; spans of no steps are never it. */
static const struct span *find_span(const struct sampler *sampler, uint64_t step)
{
    uint32_t low = 0, high = sampler->n_spans;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (sampler->spans[middle].first_step <= step) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &sampler->spans[low];
}

uint32_t sampler_batch_size(const struct sampler *sampler, uint64_t step)
{
    return find_span(sampler, step)->batch;
}

/* The first data set whose kept rows end past `place`; data sets without kept rows are never it. */
static uint32_t find_dataset(const struct sampler *sampler, uint64_t place)
{
    uint32_t low = 0, high = sampler->n_datasets - 1;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (sampler->datasets[middle].end > place) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* The k-th kept row of a data set. */
static struct sample_row row_of(const struct sampler *sampler, uint32_t dataset, uint64_t k)
{
    const struct bit_select *select = &sampler->datasets[dataset].select;

    return (struct sample_row){.dataset = dataset,
                               .row = select->words ? bit_select_at(select, k) : k};
}

/* A batch of an epoch over the whole list. */
static void draw_epoch(const struct sampler *sampler, const struct span_batch *batch,
                       struct sample_row *ret_rows)
{
    struct permutation perm;

    permutation_init(&perm, sampler->n_sequences, sampler->seed, batch->epoch);
    for (uint32_t i = 0; i < batch->n; i++) {
        uint64_t place = (batch->place + i) % sampler->n_sequences; /* wraps */
        uint32_t dataset;

        if (sampler->order == SKRULL_ORDER_SHUFFLE) {
            place = permutation_at(&perm, place);
        } else if (sampler->sorted) {
            place = sampler->sorted[place];
        }
        dataset = find_dataset(sampler, place);
        ret_rows[i] = row_of(sampler, dataset, place - begin_of(sampler, dataset));
    }
}

/* Permutations in use: neighbouring samples are mostly of few data sets, each in one epoch. */
#define N_CACHED 16
struct cached {
    bool is_set;
    uint32_t dataset;
    uint64_t epoch;
    struct permutation perm;
};

/* Data sets of the same size have unrelated orders: each has a seed of its own. */
static const struct permutation *cached_permutation(const struct sampler *sampler,
                                                    struct cached *cache, uint32_t dataset,
                                                    uint64_t epoch, uint64_t n)
{
    const uint64_t apart = UINT64_C(0xd1342543de82ef95);
    struct cached *cached = &cache[dataset % N_CACHED];

    if (!cached->is_set || cached->dataset != dataset || cached->epoch != epoch) {
        cached->is_set = true;
        cached->dataset = dataset;
        cached->epoch = epoch;
        permutation_init(&cached->perm, n, sampler->seed + (dataset + 1) * apart, epoch);
    }
    return &cached->perm;
}

/* A batch of a mixture. */
static void draw_mixture(const struct sampler *sampler, const struct span_batch *batch,
                         struct sample_row *ret_rows)
{
    struct cached cache[N_CACHED];

    for (size_t i = 0; i < N_CACHED; i++) {
        cache[i].is_set = false;
    }
    for (uint32_t i = 0; i < batch->n; i++) {
        struct mixture_draw draw = mixture_at(sampler->mixture, batch->place + i);
        uint64_t begin = begin_of(sampler, draw.dataset);
        uint64_t n = sampler->datasets[draw.dataset].end - begin, k = draw.draw % n;

        if (sampler->order == SKRULL_ORDER_SHUFFLE) {
            k = permutation_at(cached_permutation(sampler, cache, draw.dataset, draw.draw / n, n),
                               k);
        } else if (sampler->sorted) {
            k = sampler->sorted[begin + k];
        }
        ret_rows[i] = row_of(sampler, draw.dataset, k);
    }
}

int sampler_step(const struct sampler *sampler, uint64_t step, struct sample_row *ret_rows,
                 struct sample_batch *ret_batch, struct skrull_error *err)
{
    struct span_batch batch;

    if (step >= sampler->steps) {
        return skrull_error_because(
            err, SKRULL_ERR_OUT_OF_RANGE, SKRULL_REASON_STEP_OUT_OF_RANGE, sampler->steps,
            "step %" PRIu64 ": the job has %" PRIu64 ", from 0", step, sampler->steps);
    }
    batch = span_at(find_span(sampler, step), step);
    if (sampler->mixture) {
        draw_mixture(sampler, &batch, ret_rows);
    } else {
        draw_epoch(sampler, &batch, ret_rows);
    }
    *ret_batch = (struct sample_batch){
        .epoch = batch.epoch, .first_sample = batch.first_sample, .n_rows = batch.n};
    return 0;
}

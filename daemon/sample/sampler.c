/*
 * Steps to rows. The kept rows of all data sets form one list, numbered through; an epoch is an
 * order of it, the identity or a keyed permutation; step s of an epoch takes places [s K, (s + 1)
 * K). So any step is found without those before it, and nothing changes when ranks do. An immutable
 * object: thread-safe.
 */
#include "sample/sample.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "ckd.h"
#include "sample/permutation.h"
#include "sample/select.h"

struct dataset {
    uint64_t end;             /* kept rows of this and all data sets before */
    struct bit_select select; /* of the kept rows; words NULL: all are kept */
};

struct sampler {
    uint64_t seed;
    enum skrull_order order;
    uint32_t batch;
    uint64_t n_sequences; /* in an epoch */
    uint64_t epoch_steps;
    uint64_t steps;
    uint32_t n_datasets;
    struct dataset datasets[]; /* [n_datasets] */
};

static int check_options(const struct sampler_options *options, struct skrull_error *err)
{
    if (options->order != SKRULL_ORDER_SHUFFLE && options->order != SKRULL_ORDER_SEQUENTIAL) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                options->order == SKRULL_ORDER_SORTED
                                    ? "order: sorted is not built yet; use shuffle or sequential"
                                    : "order: %d is none; use shuffle or sequential",
                                (int)options->order);
    }
    if (options->batch == 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "batch.global: 0 sequences; at least 1");
    }
    if ((options->epochs == 0) == (options->steps == 0)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "epochs: %" PRIu64 " and steps: %" PRIu64
                                "; give one of them, above 0",
                                options->epochs, options->steps);
    }
    return 0;
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
            return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "sampler: out of memory");
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

static int count_steps(struct sampler *sampler, const struct sampler_options *options,
                       struct skrull_error *err)
{
    uint64_t samples;

    sampler->epoch_steps = sampler->n_sequences / sampler->batch;
    if (sampler->epoch_steps == 0) {
        return skrull_error_set(
            err, SKRULL_ERR_INVALID_ARGUMENT,
            "no step: %" PRIu64 " sequences are fewer than batch.global %" PRIu32
            " and the last, partial batch is dropped; lower batch.global or add "
            "data",
            sampler->n_sequences, sampler->batch);
    }
    sampler->steps = options->steps;
    if ((options->steps == 0 && ckd_mul(&sampler->steps, options->epochs, sampler->epoch_steps)) ||
        ckd_mul(&samples, sampler->steps, (uint64_t)sampler->batch)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %" PRIu64 " with %" PRIu64 " steps an epoch of %" PRIu32
                                " sequences are more than 2^64 samples; lower it",
                                options->steps ? "steps" : "epochs",
                                options->steps ? options->steps : options->epochs,
                                sampler->epoch_steps, sampler->batch);
    }
    return 0;
}

static int fill(struct sampler *sampler, const struct sampler_options *options,
                struct skrull_error *err)
{
    int status = 0;

    sampler->seed = options->seed;
    sampler->order = options->order;
    sampler->batch = options->batch;
    for (uint32_t i = 0; status == 0 && i < options->n_datasets; i++) {
        status = add_rows(sampler, &options->rows[i], err);
    }
    return status < 0 ? status : count_steps(sampler, options, err);
}

int sampler_new(const struct sampler_options *options, struct sampler **ret_sampler,
                struct skrull_error *err)
{
    struct sampler *sampler;
    size_t bytes;
    int status = check_options(options, err);

    if (status < 0) {
        return status;
    }
    sampler = ckd_mul(&bytes, (size_t)options->n_datasets, sizeof(struct dataset)) ||
                      ckd_add(&bytes, bytes, sizeof(*sampler))
                  ? NULL
                  : calloc(1, bytes);
    if (!sampler) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "sampler: out of memory");
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
        free(sampler);
    }
}

uint64_t sampler_steps(const struct sampler *sampler)
{
    return sampler->steps;
}

uint64_t sampler_epoch_sequences(const struct sampler *sampler)
{
    return sampler->n_sequences;
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

static struct sample_row row_at(const struct sampler *sampler, uint64_t place)
{
    uint32_t i = find_dataset(sampler, place);
    const struct dataset *dataset = &sampler->datasets[i];
    uint64_t row = place - (i > 0 ? sampler->datasets[i - 1].end : 0);

    return (struct sample_row){
        .dataset = i, .row = dataset->select.words ? bit_select_at(&dataset->select, row) : row};
}

int sampler_step(const struct sampler *sampler, uint64_t step, struct sample_row *ret_rows,
                 uint64_t *ret_epoch, struct skrull_error *err)
{
    uint64_t epoch = step / sampler->epoch_steps;
    uint64_t begin = step % sampler->epoch_steps * sampler->batch;
    struct permutation perm;

    if (step >= sampler->steps) {
        return skrull_error_set(err, SKRULL_ERR_OUT_OF_RANGE,
                                "step %" PRIu64 ": the job has %" PRIu64 ", from 0", step,
                                sampler->steps);
    }
    permutation_init(&perm, sampler->n_sequences, sampler->seed, epoch);
    for (uint32_t i = 0; i < sampler->batch; i++) {
        uint64_t place = begin + i;

        if (sampler->order == SKRULL_ORDER_SHUFFLE) {
            place = permutation_at(&perm, place);
        }
        ret_rows[i] = row_at(sampler, place);
    }
    *ret_epoch = epoch;
    return 0;
}

/*
 * What an index holds, in figures: exact quantiles by nearest rank in O(count) and constant memory.
 * A quantile is found by counting, in two passes of 16 bits each: which upper half holds the rank,
 * then which lower half within it. No copy of the lengths, whatever their number. Thread-safe.
 */
#include "index/index.h"

#include <stdlib.h>

#define N_QUANTILES 4
#define N_HALVES 65536

/* In thousandths, so that ranks are whole numbers on every machine. */
static const uint32_t quantiles[N_QUANTILES] = {500, 900, 990, 999};

/* The rank of a quantile, from 1: ceil(q x count), without the product's overflow. */
static uint64_t rank_of(uint32_t thousandths, uint64_t count)
{
    uint64_t whole = count / 1000 * thousandths, rest = count % 1000 * thousandths;

    return whole + (rest + 999) / 1000;
}

/* The half that holds the rank; takes off it what the halves before hold. */
static uint32_t find_half(const uint64_t counts[N_HALVES], uint64_t *rank)
{
    uint32_t half = 0;

    /* Rows that were lost between two passes may leave the rank beyond what was counted. */
    while (half < N_HALVES - 1 && counts[half] < *rank) {
        *rank -= counts[half++];
    }
    return half;
}

/* Bits that a length takes: the bin [2^(i-1), 2^i); 0 has none. */
static unsigned int bin_of(uint32_t length)
{
    return length ? 32u - (unsigned int)__builtin_clz(length) : 0;
}

static void count_upper(const struct length_index *idx, uint64_t counts[N_HALVES],
                        struct index_stats *stats)
{
    uint32_t min = UINT32_MAX, max = 0;

    for (uint64_t row = 0; row < idx->count; row++) {
        uint32_t length = idx->lengths[row];

        counts[length >> 16]++;
        stats->bins[bin_of(length)]++;
        stats->tokens += length;
        min = length < min ? length : min;
        max = length > max ? length : max;
    }
    stats->min = idx->count > 0 ? min : 0;
    stats->max = max;
}

/* Counts the lower halves of the lengths with one of the upper halves, one pass for all of them. */
static void count_lower(const struct length_index *idx, const uint32_t upper[N_QUANTILES],
                        uint64_t *counts)
{
    for (uint64_t row = 0; row < idx->count; row++) {
        uint32_t length = idx->lengths[row];

        for (size_t i = 0; i < N_QUANTILES; i++) {
            counts[i * N_HALVES + (length & 0xffff)] += length >> 16 == upper[i];
        }
    }
}

int index_describe(const struct length_index *idx, struct index_stats *ret_stats,
                   struct skrull_error *err)
{
    struct index_stats stats = {.format = idx->format, .count = idx->count};
    uint64_t *results[N_QUANTILES] = {&stats.p50, &stats.p90, &stats.p99, &stats.p999};
    uint32_t upper[N_QUANTILES];
    uint64_t ranks[N_QUANTILES];
    int status;
    uint64_t *counts = calloc((1 + N_QUANTILES) * N_HALVES, sizeof(*counts));

    if (!counts) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "index statistics: out of memory");
    }
    count_upper(idx, counts, &stats);
    for (size_t i = 0; i < N_QUANTILES; i++) {
        ranks[i] = rank_of(quantiles[i], idx->count);
        upper[i] = find_half(counts, &ranks[i]);
    }
    count_lower(idx, upper, counts + N_HALVES);
    for (size_t i = 0; i < N_QUANTILES; i++) {
        *results[i] = upper[i] << 16 | find_half(counts + (1 + i) * N_HALVES, &ranks[i]);
    }
    free(counts);
    for (uint64_t row = 0; idx->loss_tokens && row < idx->count; row++) {
        stats.loss_tokens += idx->loss_tokens[row];
    }
    stats.mean = stats.count > 0 ? (double)stats.tokens / (double)stats.count : 0.0;
    status = index_check_whole(idx, err);
    if (status == 0) {
        *ret_stats = stats;
    }
    return status;
}

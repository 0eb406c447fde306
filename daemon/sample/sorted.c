/*
 * A radix sort by 16 bits a round, stable, so that ties stay in the order of their places: the low
 * half of the lengths first, then, where any length needs it, the high half. Pure.
 */
#include "sample/sorted.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ckd.h"

#define N_DIGITS 65536

/* Lengths by place; returns the longest. */
static uint32_t gather(const struct sample_rows *rows, uint32_t n_datasets, uint64_t n,
                       uint32_t *ret_lengths)
{
    uint32_t longest = 0;
    uint64_t place = 0;

    for (uint32_t i = 0; i < n_datasets; i++) {
        for (uint64_t row = 0; row < rows[i].count; row++) {
            uint32_t length = rows[i].lengths[row];

            if (rows[i].kept && !(rows[i].kept[row / 64] >> row % 64 & 1)) {
                continue;
            }
            length = length > rows[i].limit ? (uint32_t)rows[i].limit : length;
            longest = length > longest ? length : longest;
            ret_lengths[place++] = length;
        }
    }
    assert(place == n);
    return longest;
}

/* One round: `from` (NULL: all places, ascending) into `to` by 16 bits of the lengths; `ends` is
 * scratch [N_DIGITS]. */
static void sort_round(const uint32_t *lengths, uint32_t shift, const uint32_t *from, uint32_t *to,
                       uint64_t n, uint64_t *ends)
{
    uint64_t sum = 0;

    memset(ends, 0, N_DIGITS * sizeof(*ends));
    for (uint64_t i = 0; i < n; i++) {
        ends[lengths[i] >> shift & (N_DIGITS - 1)]++;
    }
    for (size_t digit = 0; digit < N_DIGITS; digit++) {
        uint64_t count = ends[digit];

        ends[digit] = sum;
        sum += count;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint32_t place = from ? from[i] : (uint32_t)i;

        to[ends[lengths[place] >> shift & (N_DIGITS - 1)]++] = place;
    }
}

/* n words; NULL: out of memory. */
static uint32_t *words(uint64_t n)
{
    size_t bytes;

    return ckd_mul(&bytes, n, sizeof(uint32_t)) ? NULL : malloc(bytes ? bytes : 1);
}

int sorted_places(const struct sample_rows *rows, uint32_t n_datasets, uint64_t n,
                  uint32_t *ret_places)
{
    uint64_t *ends = malloc(N_DIGITS * sizeof(*ends));
    uint32_t *lengths = words(n), *half = NULL;
    bool is_wide = lengths && gather(rows, n_datasets, n, lengths) >= N_DIGITS;
    int status = -1;

    if (is_wide) {
        half = words(n);
    }
    if (ends && lengths && (half || !is_wide)) {
        sort_round(lengths, 0, NULL, half ? half : ret_places, n, ends);
        if (half) {
            sort_round(lengths, 16, half, ret_places, n, ends);
        }
        status = 0;
    }
    free(half);
    free(lengths);
    free(ends);
    return status;
}

/*
 * Shares and turns of a mixture. The turns of a block are R. Tijdeman's ("The chairman assignment
 * problem", Discrete Mathematics 32, 1980): after any k turns each of n data sets had k times its
 * share of them, give or take less than 1 - 1 / (2n - 2) (two alike alternate, a single one stands
 * in the middle). At turn k, of the data sets that are due (k c - x T >= T / (2n - 2), where c of T
 * turns are its share and x it had), the one that would first be overdue has it. Whole numbers
 * only; ties to the lower data set. Thread-safe once made.
 */
#include "sample/mixture.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

#define FRACTION_BITS 52 /* of an IEEE double, without the leading one */

/* A finite double above 0 is *ret_number x 2^(exponent returned), a number below 2^53. */
static uint32_t take_apart(double weight, uint64_t *ret_number)
{
    uint64_t bits, fraction;
    uint32_t exponent;

    static_assert(sizeof(bits) == sizeof(weight), "doubles are IEEE's");
    memcpy(&bits, &weight, sizeof(bits));
    fraction = bits & ((UINT64_C(1) << FRACTION_BITS) - 1);
    exponent = (uint32_t)(bits >> FRACTION_BITS);
    *ret_number = exponent ? fraction | UINT64_C(1) << FRACTION_BITS : fraction;
    return exponent ? exponent : 1;
}

/* The weight in units of 2^-10 of the last bit of the one with the largest exponent. */
static uint64_t units_of(double weight, uint32_t largest)
{
    uint64_t number;
    uint32_t shift = largest - take_apart(weight, &number);

    return shift > 63 ? 0 : (number << 10) >> shift;
}

/* What a data set's share was rounded down by. */
struct remainder {
    wide rest;
    uint32_t dataset;
};

/* Larger ones first, then lower data sets. */
static int compare_remainders(const void *a, const void *b)
{
    const struct remainder *left = a, *right = b;

    if (left->rest != right->rest) {
        return left->rest > right->rest ? -1 : 1;
    }
    return left->dataset < right->dataset ? -1 : 1;
}

int mixture_shares(const struct sample_rows *rows, uint32_t n_datasets, uint32_t *ret_shares)
{
    struct remainder *remainders = calloc(n_datasets, sizeof(*remainders));
    uint32_t largest = 0, n_left = MIXTURE_BLOCK;
    uint64_t number;
    wide sum = 0;

    if (!remainders) {
        return -1;
    }
    for (uint32_t i = 0; i < n_datasets; i++) {
        uint32_t exponent = take_apart(rows[i].weight, &number);

        largest = exponent > largest ? exponent : largest;
    }
    for (uint32_t i = 0; i < n_datasets; i++) {
        sum += units_of(rows[i].weight, largest);
    }
    for (uint32_t i = 0; i < n_datasets; i++) {
        wide parts = (wide)units_of(rows[i].weight, largest) * MIXTURE_BLOCK;

        ret_shares[i] = (uint32_t)(parts / sum);
        remainders[i] = (struct remainder){.rest = parts % sum, .dataset = i};
        n_left -= ret_shares[i];
    }
    qsort(remainders, n_datasets, sizeof(*remainders), compare_remainders);
    for (uint32_t i = 0; i < n_left; i++) { /* fewer than data sets */
        ret_shares[remainders[i].dataset]++;
    }
    free(remainders);
    return 0;
}

/* What a data set has to get: `credit` is k c - x T. */
struct due {
    int64_t credit;
    int64_t share;
};

/* The data set that has the next turn. */
static uint32_t choose(const struct due *dues, uint32_t n_datasets, int64_t scale)
{
    uint32_t best = n_datasets;
    int64_t best_slack = 0;

    for (uint32_t i = 0; i < n_datasets; i++) {
        /* Turns until it would be overdue are slack / (scale x share). */
        int64_t slack = MIXTURE_BLOCK * (scale - 1) - dues[i].credit * scale;

        if (dues[i].share == 0 || dues[i].credit * scale < MIXTURE_BLOCK) {
            continue;
        }
        if (best == n_datasets || slack * dues[best].share < best_slack * dues[i].share) {
            best = i;
            best_slack = slack;
        }
    }
    assert(best < n_datasets); /* Tijdeman's theorem */
    return best;
}

static void take_turns(struct mixture *mixture, struct due *dues, uint32_t n_datasets)
{
    int64_t n_sharing = 0, scale;

    for (uint32_t i = 0; i < n_datasets; i++) {
        dues[i] = (struct due){.share = mixture->shares[i]};
        n_sharing += mixture->shares[i] > 0;
    }
    scale = n_sharing > 1 ? 2 * n_sharing - 2 : 2;
    for (uint32_t k = 0; k < MIXTURE_BLOCK; k++) {
        uint32_t next;

        for (uint32_t i = 0; i < n_datasets; i++) {
            dues[i].credit += dues[i].share;
        }
        next = choose(dues, n_datasets, scale);
        mixture->turns[k] = (uint16_t)next;
        mixture->before[k] =
            (uint16_t)(((int64_t)(k + 1) * dues[next].share - dues[next].credit) / MIXTURE_BLOCK);
        dues[next].credit -= MIXTURE_BLOCK;
    }
}

struct mixture *mixture_new(const struct sample_rows *rows, uint32_t n_datasets)
{
    struct mixture *mixture = calloc(1, sizeof(*mixture));
    struct due *dues = calloc(n_datasets, sizeof(*dues));

    assert(n_datasets >= 1 && n_datasets <= MIXTURE_MAX_DATASETS);
    if (mixture) {
        mixture->shares = calloc(n_datasets, sizeof(*mixture->shares));
    }
    if (!mixture || !dues || !mixture->shares ||
        mixture_shares(rows, n_datasets, mixture->shares) < 0) {
        mixture_free(mixture);
        free(dues);
        return NULL;
    }
    take_turns(mixture, dues, n_datasets);
    free(dues);
    return mixture;
}

void mixture_free(struct mixture *mixture)
{
    if (mixture) {
        free(mixture->shares);
        free(mixture);
    }
}

struct mixture_draw mixture_at(const struct mixture *mixture, uint64_t sample)
{
    uint64_t block = sample / MIXTURE_BLOCK, place = sample % MIXTURE_BLOCK;
    uint32_t dataset = mixture->turns[place];

    return (struct mixture_draw){
        .dataset = dataset,
        .draw = block * mixture->shares[dataset] + mixture->before[place],
    };
}

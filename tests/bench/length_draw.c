/*
 * Draws without replacement: the first steps of a Fisher-Yates shuffle of the rows, over
 * splitmix64, seeded for each draw alone.
 */
#include "bench/length_draw.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static size_t below(uint64_t *state, size_t n)
{
    return (size_t)((next_random(state) >> 32) * n >> 32);
}

void length_draw(const struct length_list *list, uint64_t seed, struct skrull_sequence *batch,
                 size_t n)
{
    uint32_t *rows = calloc(list->n, sizeof(*rows));

    if (!rows) {
        fprintf(stderr, "length_draw: out of memory\n");
        exit(1);
    }
    for (size_t i = 0; i < list->n; i++) {
        rows[i] = (uint32_t)i;
    }
    for (size_t i = 0; i < n; i++) {
        const size_t j = n <= list->n ? i + below(&seed, list->n - i) : below(&seed, list->n);
        const uint32_t row = rows[j], length = list->lengths[row];

        if (n <= list->n) {
            rows[j] = rows[i];
            rows[i] = row;
        }
        batch[i] = (struct skrull_sequence){
            .sample = i, .index = row, .length = length, .loss_tokens = length};
    }
    free(rows);
}

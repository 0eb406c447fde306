/*
 * Select on a bitmap: a binary search over the counts before each block of 64 words, then the words
 * of the block, then the bits of the word. Thread-safe once made.
 */
#include "sample/select.h"

#include <assert.h>
#include <stdlib.h>

#include "ckd.h"

#define BLOCK_WORDS 64

static uint32_t popcount(uint64_t word)
{
    return (uint32_t)__builtin_popcountll(word);
}

int bit_select_init(struct bit_select *select, const uint64_t *words, uint64_t n_bits)
{
    uint64_t n_words = n_bits / 64 + (n_bits % 64 != 0);
    uint64_t n_blocks = n_words / BLOCK_WORDS + 1, n_set = 0;
    size_t bytes;

    *select = (struct bit_select){.words = words, .n_bits = n_bits, .n_blocks = n_blocks};
    if (ckd_mul(&bytes, n_blocks, sizeof(*select->before))) {
        return -1;
    }
    select->before = malloc(bytes);
    if (!select->before) {
        return -1;
    }
    for (uint64_t w = 0; w < n_words; w++) {
        if (w % BLOCK_WORDS == 0) {
            select->before[w / BLOCK_WORDS] = n_set;
        }
        n_set += popcount(words[w]);
    }
    if (n_words % BLOCK_WORDS == 0) {
        select->before[n_words / BLOCK_WORDS] = n_set; /* a last block without words */
    }
    select->n_set = n_set;
    return 0;
}

void bit_select_deinit(struct bit_select *select)
{
    free(select->before);
    select->before = NULL;
}

/* The last block before which at most k bits are set. */
static uint64_t find_block(const struct bit_select *select, uint64_t k)
{
    uint64_t low = 0, high = select->n_blocks;

    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;

        if (select->before[middle] <= k) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Bit k of the word's set bits: the half that holds it, again and again. */
static uint32_t bit_in_word(uint64_t word, uint64_t k)
{
    uint32_t place = 0;

    for (uint32_t width = 32; width > 0; width /= 2) {
        uint32_t count = popcount(word & ((UINT64_C(1) << width) - 1));

        if (k >= count) {
            k -= count;
            word >>= width;
            place += width;
        }
    }
    return place;
}

uint64_t bit_select_at(const struct bit_select *select, uint64_t k)
{
    uint64_t block = find_block(select, k), w = block * BLOCK_WORDS;

    assert(k < select->n_set);
    k -= select->before[block];
    for (uint64_t count = popcount(select->words[w]); k >= count;
         count = popcount(select->words[w])) {
        k -= count;
        w++;
    }
    return w * 64 + bit_in_word(select->words[w], k);
}

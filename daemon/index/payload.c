/*
 * The payload of a .skx: offsets of its arrays, its XXH3-64, the check of its rows. Written for any
 * index, so that one data set has one hash whatever file it came in. Thread-safe.
 */
#include "index/payload.h"

#include <inttypes.h>
#include <stddef.h>

#include <xxhash.h>

#include "ckd.h"

/* The next array of `count` 4-byte items after `at`; -1: past any file. */
static int place_array(uint64_t count, uint64_t *at, uint64_t *ret_begin)
{
    uint64_t begin, bytes;

    if (ckd_add(&begin, *at, SKX_ALIGN - 1)) {
        return -1;
    }
    begin -= begin % SKX_ALIGN;
    if (ckd_mul(&bytes, count, sizeof(uint32_t)) || ckd_add(at, begin, bytes) || *at > INT64_MAX) {
        return -1;
    }
    *ret_begin = begin;
    return 0;
}

int skx_layout_of(uint64_t count, uint32_t flags, struct skx_layout *ret_layout)
{
    struct skx_layout layout = {0};
    uint64_t at = SKX_HEADER_SIZE;

    if (place_array(count, &at, &layout.lengths) != 0 ||
        ((flags & SKX_LOSS_TOKENS) && place_array(count, &at, &layout.loss_tokens) != 0) ||
        ((flags & SKX_SCORES) && place_array(count, &at, &layout.scores) != 0)) {
        return -1;
    }
    layout.size = at;
    *ret_layout = layout;
    return 0;
}

uint32_t skx_flags_of(const struct length_index *idx)
{
    return (idx->loss_tokens ? (uint32_t)SKX_LOSS_TOKENS : 0) |
           (idx->score_bits ? (uint32_t)SKX_SCORES : 0);
}

/* The gap before the array at `begin`, then the array. */
static int hash_array(XXH3_state_t *state, const uint32_t *items, uint64_t count, uint64_t begin,
                      uint64_t *at)
{
    static const unsigned char zeros[SKX_ALIGN];
    uint64_t bytes = count * sizeof(*items);

    if (XXH3_64bits_update(state, zeros, (size_t)(begin - *at)) != XXH_OK ||
        XXH3_64bits_update(state, items, (size_t)bytes) != XXH_OK) {
        return -1;
    }
    *at = begin + bytes;
    return 0;
}

static int hash_all(XXH3_state_t *state, const struct length_index *idx)
{
    struct skx_layout layout;
    uint64_t at = SKX_HEADER_SIZE;

    if (skx_layout_of(idx->count, skx_flags_of(idx), &layout) != 0 ||
        XXH3_64bits_reset(state) != XXH_OK ||
        hash_array(state, idx->lengths, idx->count, layout.lengths, &at) != 0) {
        return -1;
    }
    if (idx->loss_tokens &&
        hash_array(state, idx->loss_tokens, idx->count, layout.loss_tokens, &at) != 0) {
        return -1;
    }
    if (idx->score_bits &&
        hash_array(state, idx->score_bits, idx->count, layout.scores, &at) != 0) {
        return -1;
    }
    return 0;
}

int payload_hash(const struct length_index *idx, uint64_t *ret_hash, struct skrull_error *err)
{
    XXH3_state_t *state = XXH3_createState();
    int status = state ? hash_all(state, idx) : -1;

    if (status == 0) {
        *ret_hash = XXH3_64bits_digest(state);
    }
    (void)XXH3_freeState(state);
    return status == 0 ? 0
                       : skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                          "hashing the index: out of memory");
}

static int check_row(const struct length_index *idx, uint64_t row, struct skrull_error *err)
{
    if (idx->lengths[row] == 0) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "row %" PRIu64 " has length 0; lengths are 1 to 4294967295", row);
    }
    if (idx->loss_tokens && idx->loss_tokens[row] > idx->lengths[row]) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "row %" PRIu64 " has %" PRIu32 " loss tokens of %" PRIu32 " tokens",
                                row, idx->loss_tokens[row], idx->lengths[row]);
    }
    return 0;
}

int payload_check_rows(const struct length_index *idx, struct skrull_error *err)
{
    uint64_t tokens = 0, loss_tokens = 0;

    for (uint64_t row = 0; row < idx->count; row++) {
        int status = check_row(idx, row, err);

        if (status < 0) {
            return status;
        }
        if (ckd_add(&tokens, tokens, idx->lengths[row])) {
            return skrull_error_set(err, SKRULL_ERR_DATA_LOSS, "the lengths sum to over 2^64");
        }
        loss_tokens += idx->loss_tokens ? idx->loss_tokens[row] : 0;
    }
    if (tokens != idx->tokens) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "the lengths sum to %" PRIu64 ", the header says %" PRIu64, tokens,
                                idx->tokens);
    }
    if (loss_tokens != idx->n_loss_tokens) {
        return skrull_error_set(err, SKRULL_ERR_DATA_LOSS,
                                "the loss tokens sum to %" PRIu64 ", the header says %" PRIu64,
                                loss_tokens, idx->n_loss_tokens);
    }
    return 0;
}

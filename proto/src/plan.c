/*
 * The geometry of slots, which every side must agree on, and digests as hex. A slot is ceil(S /
 * (chunks x align)) x align tokens a chunk; that is ceil(ceil(S / align) / chunks) x align, whose
 * divisors fit 64 bits whatever the caller says. Pure functions, any thread.
 */
#include <skrull/plan.h>

#include <string.h>

#include "arena.h"
#include "ckd.h"

void skrull_plan_free(struct skrull_plan *plan)
{
    if (plan) {
        arena_free(plan->arena);
    }
}

static uint64_t divide_up(uint64_t value, uint64_t divisor)
{
    return value / divisor + (value % divisor != 0);
}

/* Chunks that one member holds. */
static uint32_t chunks_per_member(uint32_t group_size, enum skrull_shard shard)
{
    return group_size > 1 && shard != SKRULL_SHARD_CONTIGUOUS ? 2 : 1;
}

/* Padded tokens of one chunk; UINT64_MAX where they do not fit. */
static uint64_t chunk_tokens(uint64_t length, uint32_t group_size, uint32_t align,
                             enum skrull_shard shard)
{
    uint64_t unit = align ? align : 1, members = group_size ? group_size : 1;
    uint64_t units = divide_up(length, unit), tokens;

    units = divide_up(units, members * chunks_per_member(group_size, shard));
    return ckd_mul(&tokens, units, unit) ? UINT64_MAX : tokens;
}

uint64_t skrull_slot_tokens(uint64_t length, uint32_t group_size, uint32_t align,
                            enum skrull_shard shard)
{
    uint64_t chunk = chunk_tokens(length, group_size, align, shard);

    return chunks_per_member(group_size, shard) == 2 ? sat_add_u64(chunk, chunk) : chunk;
}

uint32_t skrull_slot_segments(uint32_t group_size, enum skrull_shard shard)
{
    return chunks_per_member(group_size, shard);
}

static void cut_chunk(uint32_t length, uint64_t chunk, uint64_t i_chunk, struct skrull_segment *ret)
{
    uint64_t begin, end;

    if (ckd_mul(&begin, i_chunk, chunk)) {
        begin = UINT64_MAX;
    }
    end = sat_add_u64(begin, chunk);
    ret->token_begin = begin < length ? (uint32_t)begin : length;
    ret->token_end = end < length ? (uint32_t)end : length;
    ret->padded_tokens = (uint32_t)chunk;
}

void skrull_slot_cut(uint32_t length, uint32_t group_size, uint32_t member, uint32_t align,
                     enum skrull_shard shard, struct skrull_segment *segments)
{
    uint64_t chunk = chunk_tokens(length, group_size, align, shard);

    cut_chunk(length, chunk, member, &segments[0]);
    if (chunks_per_member(group_size, shard) == 2) {
        cut_chunk(length, chunk, 2 * (uint64_t)group_size - 1 - member, &segments[1]);
    }
}

uint64_t skrull_longest_tokens(uint32_t bucket_tokens, uint32_t group_size, uint32_t align,
                               enum skrull_shard shard)
{
    uint64_t unit = (align ? align : 1) * (uint64_t)chunks_per_member(group_size, shard);

    return bucket_tokens / unit * unit * (group_size ? group_size : 1);
}

void skrull_digest_to_hex(const uint8_t digest[SKRULL_DIGEST_SIZE],
                          char ret_hex[SKRULL_DIGEST_HEX_SIZE])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < SKRULL_DIGEST_SIZE; i++) {
        ret_hex[2 * i] = digits[digest[i] >> 4];
        ret_hex[2 * i + 1] = digits[digest[i] & 15];
    }
    ret_hex[SKRULL_DIGEST_HEX_SIZE - 1] = '\0';
}

/* The value of a lower-case hex digit, or -1. */
static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

int skrull_digest_from_hex(const char *hex, uint8_t ret_digest[SKRULL_DIGEST_SIZE])
{
    uint8_t digest[SKRULL_DIGEST_SIZE];

    if (!hex || strnlen(hex, SKRULL_DIGEST_HEX_SIZE) != SKRULL_DIGEST_HEX_SIZE - 1) {
        return SKRULL_ERR_INVALID_ARGUMENT;
    }
    for (size_t i = 0; i < SKRULL_DIGEST_SIZE; i++) {
        int high = hex_value(hex[2 * i]), low = hex_value(hex[2 * i + 1]);

        if (high < 0 || low < 0) {
            return SKRULL_ERR_INVALID_ARGUMENT;
        }
        digest[i] = (uint8_t)(high << 4 | low);
    }
    memcpy(ret_digest, digest, sizeof(digest));
    return 0;
}

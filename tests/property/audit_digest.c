/* Digests a second time: all bytes of a rank written one after another, then hashed at once. */
#include "property/audit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/sha.h>

struct bytes {
    uint8_t *data;
    size_t len, size;
};

static void put(struct bytes *bytes, const void *data, size_t len)
{
    if (bytes->len + len > bytes->size) {
        bytes->size = 2 * (bytes->len + len);
        bytes->data = realloc(bytes->data, bytes->size);
        assert_non_null(bytes->data);
    }
    memcpy(&bytes->data[bytes->len], data, len);
    bytes->len += len;
}

/* The `n` low bytes of a number, the lowest first. */
static void put_number(struct bytes *bytes, uint64_t number, int n)
{
    for (int i = 0; i < n; i++) {
        const uint8_t byte = (uint8_t)(number >> (8 * i));

        put(bytes, &byte, 1);
    }
}

static void put_double(struct bytes *bytes, double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof(bits));
    put_number(bytes, bits, 8);
}

static void put_segment(struct bytes *bytes, const struct skrull_segment *segment)
{
    put_number(bytes, segment->sample, 8);
    put_number(bytes, segment->dataset, 4);
    put_number(bytes, segment->index, 8);
    put_number(bytes, segment->sequence_length, 4);
    put_number(bytes, segment->token_begin, 4);
    put_number(bytes, segment->token_end, 4);
    put_number(bytes, segment->padded_tokens, 4);
    put_number(bytes, segment->group_first, 4);
    put_number(bytes, segment->group_size, 4);
    put_double(bytes, segment->loss_weight);
}

static void put_rank(struct bytes *bytes, const struct skrull_plan *plan,
                     const struct skrull_rank *rank)
{
    put(bytes, "skrull-rank-1", 14); /* with its NUL */
    put_number(bytes, plan->step, 8);
    put_number(bytes, plan->epoch, 8);
    put_number(bytes, plan->dp, 4);
    put_number(bytes, plan->cp, 4);
    put_number(bytes, rank->data_rank, 4);
    put_number(bytes, rank->n_micro_batches, 4);
    for (uint32_t m = 0; m < rank->n_micro_batches; m++) {
        const struct skrull_micro_batch *micro_batch =
            &plan->micro_batches[rank->first_micro_batch + m];

        put_number(bytes, micro_batch->dummy, 1);
        put_number(bytes, micro_batch->n_segments, 4);
        for (uint32_t i = 0; i < micro_batch->n_segments; i++) {
            put_segment(bytes, &plan->segments[micro_batch->first_segment + i]);
        }
    }
}

int audit_digests(const struct skrull_plan *plan, char ret_message[AUDIT_MESSAGE_SIZE])
{
    struct bytes all = {0}, own = {0};
    uint8_t hash[SHA256_DIGEST_LENGTH];
    int result = 0;

    put(&all, "skrull-plan-1", 14);
    for (size_t r = 0; r < plan->n_ranks; r++) {
        own.len = 0;
        put_rank(&own, plan, &plan->ranks[r]);
        (void)SHA256(own.data, own.len, hash);
        put(&all, hash, SKRULL_DIGEST_SIZE);
        if (memcmp(hash, plan->ranks[r].digest, SKRULL_DIGEST_SIZE) != 0) {
            (void)snprintf(ret_message, AUDIT_MESSAGE_SIZE, "the digest of rank %zu is wrong", r);
            result = 1;
        }
    }
    (void)SHA256(all.data, all.len, hash);
    if (memcmp(hash, plan->digest, SKRULL_DIGEST_SIZE) != 0) {
        (void)snprintf(ret_message, AUDIT_MESSAGE_SIZE, "the digest of the plan is wrong");
        result = 1;
    }
    free(own.data);
    free(all.data);
    return result;
}

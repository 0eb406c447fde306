/*
 * Digests of plans: SHA-256 over the little-endian layout that <skrull/plan.h> states, cut to 16
 * bytes. Fields are laid into a buffer and hashed in large pieces: a call into the hash library for
 * each costs more than the hash. Any thread.
 */
#include "plan_digest.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include <openssl/evp.h>

#define RANK_PREFIX "skrull-rank-1" /* the NUL is hashed too */
#define PLAN_PREFIX "skrull-plan-1"
#define SEGMENT_BYTES ((size_t)52)
#define BUFFER_BYTES (SEGMENT_BYTES * 78) /* about a page */

struct hasher {
    EVP_MD *algorithm;
    EVP_MD_CTX *state;
    size_t len;
    bool is_failed;
    uint8_t buffer[BUFFER_BYTES];
};

static void hasher_deinit(struct hasher *hasher)
{
    EVP_MD_CTX_free(hasher->state);
    EVP_MD_free(hasher->algorithm);
}

static int hasher_init(struct hasher *hasher)
{
    hasher->algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
    hasher->state = EVP_MD_CTX_new();
    if (hasher->algorithm && hasher->state) {
        return 0;
    }
    hasher_deinit(hasher);
    return SKRULL_ERR_INTERNAL;
}

static void hasher_flush(struct hasher *hasher)
{
    if (!EVP_DigestUpdate(hasher->state, hasher->buffer, hasher->len)) {
        hasher->is_failed = true;
    }
    hasher->len = 0;
}

/* Room for `bytes` (at most BUFFER_BYTES) in the buffer. */
static uint8_t *hasher_reserve(struct hasher *hasher, size_t bytes)
{
    uint8_t *place;

    if (bytes > BUFFER_BYTES - hasher->len) {
        hasher_flush(hasher);
    }
    place = hasher->buffer + hasher->len;
    hasher->len += bytes;
    return place;
}

static void hasher_start(struct hasher *hasher, const char *prefix, size_t prefix_size)
{
    hasher->len = 0;
    hasher->is_failed = !EVP_DigestInit_ex2(hasher->state, hasher->algorithm, NULL);
    memcpy(hasher_reserve(hasher, prefix_size), prefix, prefix_size);
}

static int hasher_finish(struct hasher *hasher, uint8_t ret_digest[SKRULL_DIGEST_SIZE])
{
    uint8_t hash[EVP_MAX_MD_SIZE];

    hasher_flush(hasher);
    if (hasher->is_failed || !EVP_DigestFinal_ex(hasher->state, hash, NULL)) {
        return SKRULL_ERR_INTERNAL;
    }
    memcpy(ret_digest, hash, SKRULL_DIGEST_SIZE);
    return 0;
}

/* Written byte by byte, which compilers turn into one store on little-endian machines. */
static uint8_t *put_u32(uint8_t *place, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        place[i] = (uint8_t)(value >> (8 * i));
    }
    return place + 4;
}

static uint8_t *put_u64(uint8_t *place, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        place[i] = (uint8_t)(value >> (8 * i));
    }
    return place + 8;
}

static void hash_segment(struct hasher *hasher, const struct skrull_segment *segment)
{
    uint8_t *place = hasher_reserve(hasher, SEGMENT_BYTES);
    uint64_t weight;

    memcpy(&weight, &segment->loss_weight, sizeof(weight));
    place = put_u64(place, segment->sample);
    place = put_u32(place, segment->dataset);
    place = put_u64(place, segment->index);
    place = put_u32(place, segment->sequence_length);
    place = put_u32(place, segment->token_begin);
    place = put_u32(place, segment->token_end);
    place = put_u32(place, segment->padded_tokens);
    place = put_u32(place, segment->group_first);
    place = put_u32(place, segment->group_size);
    (void)put_u64(place, weight);
}

static void hash_micro_batch(struct hasher *hasher, const struct skrull_plan *plan,
                             const struct skrull_micro_batch *micro_batch)
{
    uint8_t *place = hasher_reserve(hasher, 5);

    *place++ = micro_batch->dummy;
    (void)put_u32(place, micro_batch->n_segments);
    for (uint32_t i = 0; i < micro_batch->n_segments; i++) {
        hash_segment(hasher, &plan->segments[micro_batch->first_segment + i]);
    }
}

static int hash_rank(struct hasher *hasher, const struct skrull_plan *plan,
                     const struct skrull_rank *rank, uint8_t ret_digest[SKRULL_DIGEST_SIZE])
{
    uint8_t *place;

    hasher_start(hasher, RANK_PREFIX, sizeof(RANK_PREFIX));
    place = hasher_reserve(hasher, 32);
    place = put_u64(place, plan->step);
    place = put_u64(place, plan->epoch);
    place = put_u32(place, plan->dp);
    place = put_u32(place, plan->cp);
    place = put_u32(place, rank->data_rank);
    (void)put_u32(place, rank->n_micro_batches);
    for (uint32_t i = 0; i < rank->n_micro_batches; i++) {
        hash_micro_batch(hasher, plan, &plan->micro_batches[rank->first_micro_batch + i]);
    }
    return hasher_finish(hasher, ret_digest);
}

int skrull_rank_digest(const struct skrull_plan *plan, size_t i_rank,
                       uint8_t ret_digest[SKRULL_DIGEST_SIZE])
{
    struct hasher hasher;
    int r;

    assert(i_rank < plan->n_ranks);
    r = hasher_init(&hasher);
    if (!r) {
        r = hash_rank(&hasher, plan, &plan->ranks[i_rank], ret_digest);
        hasher_deinit(&hasher);
    }
    return r;
}

int skrull_plan_digest(const uint8_t *rank_digests, size_t n_ranks,
                       uint8_t ret_digest[SKRULL_DIGEST_SIZE])
{
    struct hasher hasher;
    int r;

    r = hasher_init(&hasher);
    if (r) {
        return r;
    }
    hasher_start(&hasher, PLAN_PREFIX, sizeof(PLAN_PREFIX));
    for (size_t i = 0; i < n_ranks; i++) {
        memcpy(hasher_reserve(&hasher, SKRULL_DIGEST_SIZE), rank_digests + i * SKRULL_DIGEST_SIZE,
               SKRULL_DIGEST_SIZE);
    }
    r = hasher_finish(&hasher, ret_digest);
    hasher_deinit(&hasher);
    return r;
}

int plan_digest_all(struct skrull_plan *plan)
{
    struct hasher hasher;
    int r;

    r = hasher_init(&hasher);
    if (r) {
        return r;
    }
    for (size_t i = 0; !r && i < plan->n_ranks; i++) {
        r = hash_rank(&hasher, plan, &plan->ranks[i], plan->ranks[i].digest);
    }
    if (r) {
        goto out;
    }
    hasher_start(&hasher, PLAN_PREFIX, sizeof(PLAN_PREFIX));
    for (size_t i = 0; i < plan->n_ranks; i++) {
        memcpy(hasher_reserve(&hasher, SKRULL_DIGEST_SIZE), plan->ranks[i].digest,
               SKRULL_DIGEST_SIZE);
    }
    r = hasher_finish(&hasher, plan->digest);
out:
    hasher_deinit(&hasher);
    return r;
}

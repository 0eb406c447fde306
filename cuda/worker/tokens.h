/* Where a worker's tokens come from. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

struct token_source;

/* Tokens made up from (dataset, row): predictable enough to be learnt, the same on every machine.
 */
int tokens_generated(uint32_t vocabulary, struct token_source **ret, struct skrull_error *err);

/*
 * Megatron's token files, PREFIX.bin beside PREFIX.idx, one for each data set [n_prefixes]; a row
 * is one of the index's sequences, or its documents where is_document[i]. A token outside the
 * vocabulary is INVALID_ARGUMENT when it is read.
 */
int tokens_megatron(const char *const *prefixes, const bool *is_document, size_t n_prefixes,
                    uint32_t vocabulary, struct token_source **ret, struct skrull_error *err);
void tokens_free(struct token_source *source);

/* Which tokens: [begin, begin + n) of a row. */
struct token_range {
    uint32_t dataset;
    uint64_t index;
    uint32_t begin, n;
};
int tokens_read(const struct token_source *source, const struct token_range *range,
                int32_t *ret_tokens, struct skrull_error *err);

/*
 * Inside of the index stage: which column of a table, which field of a record holds the lengths.
 * The user names it, several for a sum, or one of the names that real tools write stands out.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

#include "index/format.h"

#define COLUMNS_MAX_PARTS 8

struct column_name {
    const char *text; /* borrowed */
    size_t len;
};

struct column_parts {
    struct column_name parts[COLUMNS_MAX_PARTS];
    size_t n;
};

/* How a known name holds lengths. */
enum column_kind {
    COLUMN_LENGTH, /* the length; a list of them: a row each */
    COLUMN_HALF,   /* with its other half, the length */
    COLUMN_ITEMS,  /* a list of tokens, to be counted */
    COLUMN_TURNS,  /* a list of messages, each with its num_tokens */
    COLUMN_LOSS,   /* the loss tokens */
};

/* The names of columns.def, in its order. */
extern const struct column_known {
    const char *name;
    enum column_kind kind;
} columns_known[];
extern const size_t columns_n_known; /* at most 64 */

/* The place of a name in columns_known, or columns_n_known. */
size_t columns_find(const char *name, size_t len);

/* Splits "prompt+response". INVALID_ARGUMENT: an empty part, one twice, too many. */
int columns_split(const struct index_source *source, struct column_parts *ret_parts,
                  struct skrull_error *err);

#define COLUMNS_NAMES_SIZE 200

/* Appends a name to "a, b, c", for a message; cut with dots, control bytes shown as `?`. */
void columns_list(char names[COLUMNS_NAMES_SIZE], const char *name, size_t len);

enum { COLUMNS_CHOSEN, COLUMNS_NONE };

/*
 * What of the known names that are there (bit i of `seen`: columns_known[i]) makes the length: a
 * name of lengths, else two halves, else a list. COLUMNS_NONE: nothing does. INVALID_ARGUMENT: two
 * do; names both.
 */
int columns_choose(const struct index_source *source, uint64_t seen, struct column_parts *ret_parts,
                   struct skrull_error *err);

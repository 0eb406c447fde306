/*
 * The choice of the column that holds the lengths: asked for, or by the names of columns.def. Where
 * two might be meant nothing is guessed. Thread-safe: tables and no state.
 */
#include "index/columns.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
const struct column_known columns_known[] = {
#define NAME(name, kind) {name, COLUMN_##kind},
#include "index/columns.def"
#undef NAME
};
/* clang-format on */

const size_t columns_n_known = sizeof(columns_known) / sizeof(columns_known[0]);

_Static_assert(sizeof(columns_known) / sizeof(columns_known[0]) <= 64, "a bit each in a u64");

size_t columns_find(const char *name, size_t len)
{
    for (size_t i = 0; i < columns_n_known; i++) {
        if (strlen(columns_known[i].name) == len && memcmp(columns_known[i].name, name, len) == 0) {
            return i;
        }
    }
    return columns_n_known;
}

static int refuse(const struct index_source *source, const char *what, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "%s: column %.60s: %s; a column is one name, or several, as "
                            "prompt+response",
                            source->path, source->column, what);
}

static int add_part(const struct index_source *source, struct column_name part,
                    struct column_parts *parts, struct skrull_error *err)
{
    if (part.len == 0) {
        return refuse(source, "an empty name", err);
    }
    for (size_t i = 0; i < parts->n; i++) {
        if (parts->parts[i].len == part.len &&
            memcmp(parts->parts[i].text, part.text, part.len) == 0) {
            return refuse(source, "a name twice", err);
        }
    }
    if (parts->n == COLUMNS_MAX_PARTS) {
        return refuse(source, "more than 8 names", err);
    }
    parts->parts[parts->n++] = part;
    return 0;
}

int columns_split(const struct index_source *source, struct column_parts *ret_parts,
                  struct skrull_error *err)
{
    struct column_parts parts = {.n = 0};
    const char *at = source->column;

    for (;;) {
        const char *end = strchrnul(at, '+');
        struct column_name part = {at, (size_t)(end - at)};
        int status;

        while (part.len > 0 && part.text[0] == ' ') {
            part.text++;
            part.len--;
        }
        while (part.len > 0 && part.text[part.len - 1] == ' ') {
            part.len--;
        }
        status = add_part(source, part, &parts, err);
        if (status < 0) {
            return status;
        }
        if (*end == '\0') {
            break;
        }
        at = end + 1;
    }
    *ret_parts = parts;
    return 0;
}

void columns_list(char names[COLUMNS_NAMES_SIZE], const char *name, size_t len)
{
    const size_t max = 40, used = strlen(names);
    char *begin = names + used;

    if (used + max + 8 > COLUMNS_NAMES_SIZE) {
        if (used + 4 < COLUMNS_NAMES_SIZE && begin[-1] != '.') {
            memcpy(begin, "...", 4);
        }
        return;
    }
    (void)snprintf(begin, COLUMNS_NAMES_SIZE - used, "%s%.*s", used ? ", " : "",
                   (int)(len < max ? len : max), name);
    for (; *begin; begin++) {
        *begin = (unsigned char)*begin < ' ' || *begin == 0x7f ? '?' : *begin;
    }
}

static struct column_name name_of(size_t i)
{
    return (struct column_name){columns_known[i].name, strlen(columns_known[i].name)};
}

static int refuse_two(const struct index_source *source, size_t a, size_t b,
                      struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "%s: %s or %s? either may be the length; say which as column",
                            source->path, columns_known[a].name, columns_known[b].name);
}

int columns_choose(const struct index_source *source, uint64_t seen, struct column_parts *ret_parts,
                   struct skrull_error *err)
{
    static const enum column_kind order[] = {COLUMN_LENGTH, COLUMN_HALF, COLUMN_ITEMS,
                                             COLUMN_TURNS};
    const size_t none = columns_n_known;

    for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
        size_t step = order[k] == COLUMN_HALF ? 2 : 1, found = none;

        for (size_t i = 0; i + step <= columns_n_known; i++) {
            uint64_t bits = ((UINT64_C(1) << step) - 1) << i;

            if (columns_known[i].kind != order[k]) {
                continue;
            }
            if ((seen & bits) == bits) {
                if (found != none) {
                    return refuse_two(source, found, i, err);
                }
                found = i;
            }
            i += step - 1;
        }
        if (found != none) {
            ret_parts->n = step;
            ret_parts->parts[0] = name_of(found);
            ret_parts->parts[1] = name_of(found + step - 1);
            return COLUMNS_CHOSEN;
        }
    }
    return COLUMNS_NONE;
}

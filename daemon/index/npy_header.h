/* Inside of the index stage: the header of a .npy file, read as data and never run. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

#include "index/format.h"

#define NPY_MAGIC "\x93NUMPY"
#define NPY_MAGIC_SIZE 6

struct npy_header {
    char kind;       /* i, u or f */
    size_t size;     /* of an item: 1, 2, 4, 8; f: 4, 8 */
    int is_big;      /* endian */
    uint64_t count;  /* items, in one dimension or in (count, 1) */
    uint64_t offset; /* of the first item; all of them end with the file */
};

/* INVALID_ARGUMENT: not a .npy, or not of numbers in one dimension. DATA_LOSS: cut, or longer than
 * its header says. */
int npy_header_read(const struct index_source *source, struct npy_header *ret_header,
                    struct skrull_error *err);

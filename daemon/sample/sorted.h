/* The order by length, as a table: 4 bytes a sequence. */
#pragma once

#include <stdint.h>

#include "sample/sample.h"

/*
 * Places of the kept rows of data sets [n_datasets] (numbered through in their order, n <= 2^32 in
 * all), ascending by length, ties by place. O(n); 8 bytes a sequence beside the result meanwhile.
 * 0, or -1: out of memory.
 */
int sorted_places(const struct sample_rows *rows, uint32_t n_datasets, uint64_t n,
                  uint32_t *ret_places);

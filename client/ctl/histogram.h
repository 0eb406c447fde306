/* Bars. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a bar of `width` columns, with NUL. */
#define HISTOGRAM_BAR_SIZE(width) ((width)*3 + 1)

/* A bar of `count` where `most` fills `width` columns: to an eighth of a column by UTF-8 blocks, to
 * a whole one by '#' else. What is not zero shows. `ret_bar` has HISTOGRAM_BAR_SIZE(width) bytes.
 */
void histogram_bar(uint64_t count, uint64_t most, size_t width, bool is_utf8, char *ret_bar);

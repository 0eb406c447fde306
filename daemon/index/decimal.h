/* Inside of the index stage: a decimal number as text, which must be whole and a u32. Exact. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum decimal {
    DECIMAL_WHOLE,    /* 0 to 2^32 - 1 */
    DECIMAL_NONE,     /* not a number at all */
    DECIMAL_NEGATIVE, /* under 0 */
    DECIMAL_FRACTION, /* not whole */
    DECIMAL_LARGE,    /* over 2^32 - 1 */
};

/* A number that is longer is DECIMAL_NONE: nobody writes a length so. */
#define DECIMAL_MAX_LEN 63

/* -?digits(.digits)?([eE][+-]?digits)?, all of text[len]. *ret_value only for DECIMAL_WHOLE. */
enum decimal decimal_parse(const char *text, size_t len, uint32_t *ret_value);

/* "is no whole number", what a message says of it. */
const char *decimal_fault(enum decimal decimal);

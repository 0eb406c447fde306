/*
 * Decimal numbers, taken apart as digits and a power of ten, so that 5.120e+02 is 512 and 1e99 is
 * too large without a rounding in between. Thread-safe.
 */
#include "index/decimal.h"

#include <string.h>

#define MAX_EXPONENT 1000000 /* past every digit of a text; the sum below stays small */

struct number {
    char digits[DECIMAL_MAX_LEN]; /* without leading zeros */
    int n_digits;
    int exponent; /* of ten, times the digits as a whole number */
    int is_negative;
};

static int is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static void add_digit(struct number *number, char digit)
{
    if (digit != '0' || number->n_digits > 0) {
        number->digits[number->n_digits++] = digit;
    }
}

/* Digits from `at`, at least one; NULL: none. */
static const char *take_digits(struct number *number, const char *at, const char *end)
{
    const char *begin = at;

    for (; at < end && is_digit(*at); at++) {
        add_digit(number, *at);
    }
    return at > begin ? at : NULL;
}

static const char *take_exponent(struct number *number, const char *at, const char *end)
{
    int exponent = 0, is_negative = 0;
    const char *begin;

    if (at < end && (*at == '+' || *at == '-')) {
        is_negative = *at++ == '-';
    }
    for (begin = at; at < end && is_digit(*at); at++) {
        exponent = exponent < MAX_EXPONENT ? exponent * 10 + (*at - '0') : MAX_EXPONENT;
    }
    number->exponent += is_negative ? -exponent : exponent;
    return at > begin ? at : NULL;
}

/* 1: all of the text is a number. */
static int split(const char *at, const char *end, struct number *number)
{
    number->is_negative = at < end && *at == '-';
    at = take_digits(number, at + number->is_negative, end);
    if (at && at < end && *at == '.') {
        const char *begin = at + 1;

        at = take_digits(number, begin, end);
        number->exponent = at ? (int)(begin - at) : 0;
    }
    if (at && at < end && (*at == 'e' || *at == 'E')) {
        at = take_exponent(number, at + 1, end);
    }
    return at == end;
}

enum decimal decimal_parse(const char *text, size_t len, uint32_t *ret_value)
{
    struct number number = {.n_digits = 0};
    uint64_t value = 0;
    int n;

    if (len == 0 || len > DECIMAL_MAX_LEN || !split(text, text + len, &number)) {
        return DECIMAL_NONE;
    }
    if (number.n_digits == 0) {
        *ret_value = 0;
        return DECIMAL_WHOLE;
    }
    if (number.is_negative) {
        return DECIMAL_NEGATIVE;
    }
    while (number.n_digits > 0 && number.digits[number.n_digits - 1] == '0') {
        number.n_digits--;
        number.exponent++;
    }
    if (number.exponent < 0) {
        return DECIMAL_FRACTION;
    }
    if (number.n_digits + number.exponent > 10) {
        return DECIMAL_LARGE;
    }
    for (n = 0; n < number.n_digits; n++) {
        value = value * 10 + (uint64_t)(number.digits[n] - '0');
    }
    for (n = 0; n < number.exponent; n++) {
        value *= 10;
    }
    if (value > UINT32_MAX) {
        return DECIMAL_LARGE;
    }
    *ret_value = (uint32_t)value;
    return DECIMAL_WHOLE;
}

const char *decimal_fault(enum decimal decimal)
{
    switch (decimal) {
    case DECIMAL_NEGATIVE:
        return "is negative";
    case DECIMAL_FRACTION:
        return "is no whole number";
    case DECIMAL_LARGE:
        return "is over 4294967295";
    case DECIMAL_NONE:
    case DECIMAL_WHOLE:
        break;
    }
    return "is no number";
}

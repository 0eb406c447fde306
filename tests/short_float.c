/*
 * Short floats by their definition: sign, exponent, mantissa. A value becomes a whole number of
 * units in the last place of its binade, which rint rounds to even.
 */
#include "short_float.h"

#include <math.h>

struct format {
    int mantissa, least_exponent, most_exponent; /* bits; of normal numbers */
};

static const struct format bf16 = {7, -126, 127}, fp16 = {10, -14, 15};

static double value_of(const struct format *format, uint16_t bits)
{
    int exponent = (bits & 0x7fff) >> format->mantissa;
    int mantissa = bits & ((1 << format->mantissa) - 1);
    double value;

    if (exponent == format->most_exponent - format->least_exponent + 2) {
        value = mantissa ? (double)NAN : HUGE_VAL;
    } else if (exponent == 0) {
        value = ldexp(mantissa, format->least_exponent - format->mantissa);
    } else {
        value = ldexp(mantissa + (1 << format->mantissa),
                      exponent - 1 + format->least_exponent - format->mantissa);
    }
    return bits & 0x8000 ? -value : value;
}

static uint16_t bits_of(const struct format *format, double value)
{
    int sign = signbit(value) ? 0x8000 : 0, exponent = 0;
    int infinite = (format->most_exponent - format->least_exponent + 2) << format->mantissa;
    double units;

    if (isnan(value)) {
        return 0x7fff; /* the one that GPUs make */
    }
    if (isinf(value)) {
        return (uint16_t)(sign | infinite);
    }
    if (!(value > 0.0) && !(value < 0.0)) {
        return (uint16_t)sign;
    }
    (void)frexp(value, &exponent);
    exponent = exponent - 1 < format->least_exponent ? format->least_exponent : exponent - 1;
    units = rint(ldexp(fabs(value), format->mantissa - exponent));
    /* A carry out of the mantissa goes into the exponent, where it belongs. */
    units += ldexp(exponent - format->least_exponent, format->mantissa);
    return (uint16_t)(sign | (units < infinite ? (int)units : infinite));
}

double bf16_value(uint16_t bits)
{
    return value_of(&bf16, bits);
}

double fp16_value(uint16_t bits)
{
    return value_of(&fp16, bits);
}

uint16_t bf16_bits(double value)
{
    return bits_of(&bf16, value);
}

uint16_t fp16_bits(double value)
{
    return bits_of(&fp16, value);
}

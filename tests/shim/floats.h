/* bf16 and fp16 on the host: to nearest even, NaN as the GPU's conversions give it (0x7fff). */
#pragma once

#include <cstdint>
#include <cstring>

namespace shim
{
inline float float_of_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

inline uint32_t bits_of_float(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

inline float float_of_bf16(uint16_t bits)
{
    return float_of_bits((uint32_t)bits << 16);
}

inline uint16_t bf16_of_float(float x)
{
    const uint32_t bits = bits_of_float(x);

    if ((bits & 0x7fffffff) > 0x7f800000) {
        return 0x7fff;
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float float_of_fp16(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = (uint32_t)(bits & 0x7fff) << 13;

    if (rest >= 0x7c00u << 13) { /* infinite, NaN */
        return float_of_bits(sign | 0x7f800000 | rest);
    }
    return float_of_bits(sign | bits_of_float(float_of_bits(rest) * 0x1p112F)); /* bias 15 to 127 */
}

inline uint16_t fp16_of_float(float x)
{
    const uint32_t bits = bits_of_float(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;

    if (rest > 0x7f800000) {
        return 0x7fff;
    }
    if (rest >= 0x477ff000) { /* 65520 and up round to infinity */
        return (uint16_t)(sign | 0x7c00);
    }
    if (rest < 0x38800000) { /* subnormal: a unit of 0.5's last place is 2^-24 */
        return (uint16_t)(sign | (bits_of_float(float_of_bits(rest) + 0.5F) - 0x3f000000));
    }
    return (uint16_t)(sign | ((rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13));
}
} // namespace shim

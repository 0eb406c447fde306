/* Checked arithmetic: true on overflow, as C23's stdckdint.h, which gcc 12 lacks. */
#pragma once

#include <stdint.h>

#define ckd_add(ret, a, b) __builtin_add_overflow((a), (b), (ret))
#define ckd_sub(ret, a, b) __builtin_sub_overflow((a), (b), (ret))
#define ckd_mul(ret, a, b) __builtin_mul_overflow((a), (b), (ret))

/* The sum, or UINT64_MAX where it does not fit. */
static inline uint64_t sat_add_u64(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return ckd_add(&sum, a, b) ? UINT64_MAX : sum;
}

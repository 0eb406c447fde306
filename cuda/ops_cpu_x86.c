/* The reference operators on x86-64: the wider build where the processor has AVX2 and FMA. */
#include "ops_cpu.h"

const struct ops *ops_cpu(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                   __builtin_cpu_supports("bmi2")
               ? ops_table_ref_v3()
               : ops_table_ref();
}

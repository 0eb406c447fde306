/* The table of the kernels that run on the CPU. */
#include "ops_cuda.h"

#define OP(file, name, params)                                                                     \
    int name##_shim(const struct params *params, void *stream, struct skrull_error *err);
#include "ops.def"
#undef OP

const struct ops *ops_shim(void)
{
    static const struct ops table = {
        .backend = "shim",
#define OP(file, name, params) .name = name##_shim,
#include "ops.def"
#undef OP
    };

    return &table;
}

/* The table of the kernels that nvcc built. */
#include "ops_cuda.h"

#define OP(file, name, params)                                                                     \
    int name##_cuda(const struct params *params, void *stream, struct skrull_error *err);
#include "ops.def"
#undef OP

const struct ops *ops_cuda(void)
{
    static const struct ops table = {
        .backend = "cuda",
#define OP(file, name, params) .name = name##_cuda,
#include "ops.def"
#undef OP
    };

    return &table;
}

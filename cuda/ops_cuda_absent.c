/* No CUDA toolkit: no such backend. */
#include "ops_cuda.h"

const struct ops *ops_cuda(void)
{
    return NULL;
}

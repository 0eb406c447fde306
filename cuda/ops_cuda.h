/* The builds of the kernels. A file that has none stands for one that was not built. */
#pragma once

#include "ops.h"

/* By nvcc, for the GPU: ops_cuda.c, or ops_cuda_absent.c, NULL. A table says nothing about the
 * machine: without a GPU its operators fail. */
const struct ops *ops_cuda(void);

/* For the CPU: NULL here (ops_shim_absent.c); tests/shim/ops_shim.c, linked before, replaces it. */
const struct ops *ops_shim(void);

/* Is there a GPU? */
#include "gpu.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

uint32_t gpu_count(void)
{
    int n = 0; /* left alone where there is no driver */
    cudaError_t code = cudaGetDeviceCount(&n);

    if (code != cudaSuccess || n <= 0) {
        (void)printf("skipped: no GPU here: %s\n",
                     code == cudaSuccess ? "none" : cudaGetErrorString(code));
        return 0;
    }
    return (uint32_t)n;
}

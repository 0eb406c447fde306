/* In place of device_cuda.c where the CUDA toolkit was not found. */
#include "device.h"

int device_cuda_open(int idx, struct device **ret, struct skrull_error *err)
{
    (void)idx;
    (void)ret;
    return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED,
                            "built without CUDA; install its toolkit and build again");
}

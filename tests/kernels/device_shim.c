/* The CPU shim: its memory is the host's, of the exact size, so that ASan sees what is beyond. */
#include "kernels/device.h"

static int copy_now(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
    return 0;
}

static void *alloc_exact(size_t bytes)
{
    return malloc(bytes ? bytes : 1);
}

const struct device *device_at(size_t i)
{
    static struct device shim = {.alloc = alloc_exact, .free = free, .copy = copy_now};

    shim.ops = ops_find("shim");
    assert_non_null(shim.ops); /* or tests would pass by running nothing */
    return i == 0 ? &shim : NULL;
}

/* Which devices there are, and which of them is this process's. Any thread. */
#include "device.h"

#include <stdlib.h>
#include <string.h>

int device_of_launcher(void)
{
    static const char *const names[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "SLURM_LOCALID"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *text = getenv(names[i]);
        char *end = NULL;
        long value = text ? strtol(text, &end, 10) : -1;

        if (text && *text && *end == '\0' && value >= 0 && value < 1024) {
            return (int)value;
        }
    }
    return 0;
}

int device_open(const char *backend, int idx, struct device **ret, struct skrull_error *err)
{
    if (strcmp(backend, "cuda") == 0) {
        return device_cuda_open(idx < 0 ? device_of_launcher() : idx, ret, err);
    }
    return device_cpu_open(ret, err);
}

void device_close(struct device *device)
{
    if (device) {
        device->ops->close(device);
    }
}

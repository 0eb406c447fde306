/* What tests on a GPU share. */
#pragma once

#include <stdint.h>

/* How many GPUs there are; 0 after one line that says why. */
uint32_t gpu_count(void);

/* Exit status of a test that was skipped. */
#define GPU_SKIPPED 77

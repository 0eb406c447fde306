/* A list of launches, for who wants to know threads and shared memory of each kernel. */
#pragma once

#include "shim/runtime.h"

namespace shim
{
/* With SHIM_TRACE=FILE: writes "PROGRAM OFFSET THREADS BYTES" once for each that differs; OFFSET
 * is the kernel's in the program, for nm. */
void trace_launch(const launch_shape &shape);
} // namespace shim

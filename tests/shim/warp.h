/* Operations of a warp, for the files that define them. */
#pragma once

#include "shim/block.h"

namespace shim
{
/* Waits for the lanes of `mask`; the operation has been run for all when it returns. */
void warp_meet(const warp_operation *operation, uint32_t mask, void *data, where at);
} // namespace shim

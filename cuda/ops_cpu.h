/* The builds of the reference operators. */
#pragma once

#include "ops.h"

/* For any machine, and for x86-64-v3 (only where that was built). */
const struct ops *ops_table_ref(void);
const struct ops *ops_table_ref_v3(void);

/* The fastest that this machine can run. */
const struct ops *ops_cpu(void);

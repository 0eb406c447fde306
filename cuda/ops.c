/* Which backends there are. "ref" is the build of "cpu" for any machine, for tests. */
#include "ops.h"

#include <string.h>

#include "ops_cpu.h"
#include "ops_cuda.h"

const struct ops *ops_find(const char *backend)
{
    if (strcmp(backend, "cpu") == 0) {
        return ops_cpu();
    }
    if (strcmp(backend, "cuda") == 0) {
        return ops_cuda();
    }
    if (strcmp(backend, "shim") == 0) {
        return ops_shim();
    }
    return strcmp(backend, "ref") == 0 ? ops_table_ref() : NULL;
}

/* The table of this build of the references. */
#include "ref.h"

const struct ops *REF(ops_table)(void)
{
    static const struct ops table = {
        .backend = "cpu",
#define OP(file, name, params) .name = REF(name),
#include "ops.def"
#undef OP
    };

    return &table;
}

/*
 * Stand-ins for operators whose kernel is not written yet, so that those that are can be used. For
 * the one file that holds a table: OPS_BUILD is its build. meson writes ops_unbuilt.def: the lines
 * of ops.def without a kernel.
 */
#pragma once

#include "ops.h"

#define OPS_NAME_NOW(name, build) name##_##build
#define OPS_NAME(name, build) OPS_NAME_NOW(name, build)

#define OP(file, name, params)                                                                     \
    int OPS_NAME(name, OPS_BUILD)(const struct params *params, void *stream,                       \
                                  struct skrull_error *err)                                        \
    {                                                                                              \
        (void)params;                                                                              \
        (void)stream;                                                                              \
        return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED, "%s has no kernel yet", #name);     \
    }
#include "ops_unbuilt.def"
#undef OP

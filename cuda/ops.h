/*
 * The operators of one backend: a table that ops.def fills. Parameters are those of skrull/cuda.h.
 * A new operator: a line in ops.def, its parameters there, ref/FILE_ref.c, which defines what is
 * correct, kernels/FILE.cu for the GPU, and tests/kernels/test_FILE.c and test_FILE_device.c.
 */
#pragma once

#include <skrull/cuda.h>

/*
 * Each returns 0, UNIMPLEMENTED (a dtype, a head dim that the backend lacks), INVALID_ARGUMENT
 * (parameters that contradict each other), RESOURCE_EXHAUSTED (no memory) or INTERNAL (the device).
 * With a stream the work may still run when the call returns: parameters were copied, what they
 * point to must live on.
 */
struct ops {
    const char *backend;
#define OP(file, name, params)                                                                     \
    int (*name)(const struct params *params, void *stream, struct skrull_error *err);
#include "ops.def"
#undef OP
};

/* The table of backend "cpu" (the references; `stream` unused, done on return), or of another that
 * was built; NULL: no such backend here. */
const struct ops *ops_find(const char *backend);

/* Kernels with one fault each, and sound ones that come close to it. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a build sees it. */
enum faulty_build { FAULTY_PLAIN, FAULTY_ADDRESS, FAULTY_THREAD, FAULTY_N_BUILDS };

struct faulty {
    const char *name;
    int (*run)(void); /* one launch; the number of wrong results */
    /* What ends the process, a part of the report; "": wrong results; NULL: nothing shows. A dash:
     * it may show or not, so it is not tried. */
    const char *reports[FAULTY_N_BUILDS];
    int n_lines; /* of the kernel, that the shim's report names */
};

extern const struct faulty faulty_kernels[];
extern const size_t n_faulty_kernels;

#ifdef __cplusplus
}
#endif

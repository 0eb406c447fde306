/* skrull-worker on a fake GPU, with the kernels on the CPU shim: for its whole way from a
 * launcher's environment to weights in a file. */
#include <stdio.h>

#include "fake.h"

int worker_main(int argc, char **argv); /* main.c's main */

#undef main
int main(int argc, char **argv)
{
    const char *reports;
    int status;

    fake_use("shim");
    fake_begin(11, 1, 1);
    status = worker_main(argc, argv);
    reports = fake_end();
    if (reports[0]) {
        (void)fprintf(stderr, "fake: %s", reports);
        return 99;
    }
    return status;
}

/* execve(2) of /proc/self/exe, which is this binary even where its file was replaced. */
#include "loop/reexec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORTS_VARIABLE "SKRULLD_KEPT_PORTS" /* "7443,0,40000" */

int reexec_keep_ports(const int *ports, size_t n)
{
    size_t size = n * 12 + 1, len = 0;
    char *text = calloc(1, size);
    int failed;

    if (!text) {
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        len += (size_t)snprintf(text + len, size - len, "%s%d", i > 0 ? "," : "", ports[i]);
    }
    failed = setenv(PORTS_VARIABLE, text, 1);
    free(text);
    return failed;
}

int reexec_kept_port(size_t i)
{
    const char *at = getenv(PORTS_VARIABLE);
    long port;

    for (; at && i > 0; i--) {
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    port = at ? strtol(at, NULL, 10) : 0;
    return port > 0 && port <= 65535 ? (int)port : 0;
}

void reexec(char *const *argv)
{
    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
    (void)execv("/proc/self/exe", argv);
}

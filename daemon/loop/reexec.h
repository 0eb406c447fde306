/*
 * The process starts itself anew: same binary, options and process id, no descriptor kept. For what
 * only a new process mends.
 */
#pragma once

#include <stddef.h>

/* For the new process: the port that each listener has, so that a port 0 stays what it became. */
int reexec_keep_ports(const int *ports, size_t n);

/* The port that listener `i` had before, or 0. */
int reexec_kept_port(size_t i);

/* Does not return, unless it fails. `argv` is main's. Everything must have been stopped and freed.
 */
void reexec(char *const *argv);

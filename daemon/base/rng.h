/* Random bytes of the kernel: for names that must not collide, never for plans. */
#pragma once

#include <stddef.h>

#include <skrull/error.h>

/* Fills `bytes` ([size]). UNAVAILABLE: the kernel has none. Thread-safe. */
int rng_bytes(void *bytes, size_t size, struct skrull_error *err);

/* Writes 2 x n_bytes lower-case hex digits of random bytes and a NUL into `ret_text`; n_bytes
 * <= 64. */
int rng_hex(char *ret_text, size_t n_bytes, struct skrull_error *err);

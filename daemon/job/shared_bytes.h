/* Bytes that several streams send: immutable, reference-counted across threads. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct shared_bytes {
    atomic_size_t n_refs;
    size_t len;
    uint8_t *data; /* [len]; owned */
};

/* Takes over `data` (malloc'd) with one reference; NULL: out of memory, and `data` stays the
 * caller's. */
struct shared_bytes *shared_bytes_new(uint8_t *data, size_t len);

/* Thread-safe; unref takes NULL. */
struct shared_bytes *shared_bytes_ref(struct shared_bytes *bytes);
void shared_bytes_unref(struct shared_bytes *bytes);

/* A copy of `data`; NULL: out of memory. */
struct shared_bytes *shared_bytes_copy(const uint8_t *data, size_t len);

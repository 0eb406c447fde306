/*
 * One message, encoded once and sent to every peer of a data rank. The last reference may be
 * dropped on a thread of the transport, hence the atomic count.
 */
#include "job/shared_bytes.h"

#include <stdlib.h>
#include <string.h>

struct shared_bytes *shared_bytes_new(uint8_t *data, size_t len)
{
    struct shared_bytes *bytes = malloc(sizeof(*bytes));

    if (bytes) {
        atomic_init(&bytes->n_refs, 1);
        bytes->len = len;
        bytes->data = data;
    }
    return bytes;
}

struct shared_bytes *shared_bytes_ref(struct shared_bytes *bytes)
{
    (void)atomic_fetch_add_explicit(&bytes->n_refs, 1, memory_order_relaxed);
    return bytes;
}

void shared_bytes_unref(struct shared_bytes *bytes)
{
    if (bytes && atomic_fetch_sub_explicit(&bytes->n_refs, 1, memory_order_acq_rel) == 1) {
        free(bytes->data);
        free(bytes);
    }
}

struct shared_bytes *shared_bytes_copy(const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    struct shared_bytes *bytes;

    if (!copy) {
        return NULL;
    }
    if (len > 0) {
        memcpy(copy, data, len);
    }
    bytes = shared_bytes_new(copy, len);
    if (!bytes) {
        free(copy);
    }
    return bytes;
}

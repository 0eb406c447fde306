/*
 * Randomness from getrandom(2). Everything that ends in a plan draws from a seed instead
 * (sample/permutation.h). Thread-safe.
 */
#include "base/rng.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

int rng_bytes(void *bytes, size_t size, struct skrull_error *err)
{
    unsigned char *at = bytes;

    while (size > 0) {
        ssize_t n = getrandom(at, size, 0);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE, "random bytes: %s",
                                    strerror(errno));
        }
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

int rng_hex(char *ret_text, size_t n_bytes, struct skrull_error *err)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[64];
    int status;

    assert(n_bytes <= sizeof(bytes));
    status = rng_bytes(bytes, n_bytes, err);
    if (status < 0) {
        return status;
    }
    for (size_t i = 0; i < n_bytes; i++) {
        ret_text[2 * i] = digits[bytes[i] >> 4];
        ret_text[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret_text[2 * n_bytes] = '\0';
    return 0;
}

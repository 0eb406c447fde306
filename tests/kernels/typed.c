/*
 * Tensors of a case stand in a list of blocks: [guard][shift][elements][guard], guards NaN in every
 * format. At a case's end all guards must be as they were, and the bits of all blocks, hashed,
 * those of the same case in another order of threads.
 */
#include "kernels/typed.h"

#include <math.h>
#include <stdio.h>

#include "shim/shim.h"

#define GUARD 64 /* bytes; keeps alignment */
#define POISON 0xff
#define ORDERS 3

struct typed_block {
    struct typed_block *next;
    unsigned char *memory; /* of the device */
    size_t before, bytes;  /* guard and shift; the tensor */
};

static void encode(enum skrull_dtype dtype, const double *from, void *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (dtype == SKRULL_DTYPE_F32) {
            ((float *)to)[i] = (float)from[i];
        } else {
            ((uint16_t *)to)[i] = dtype_encode(dtype, (float)from[i]);
        }
    }
}

static double decode(enum skrull_dtype dtype, const void *from, size_t i)
{
    return (double)(dtype == SKRULL_DTYPE_F32 ? ((const float *)from)[i]
                                              : dtype_decode(dtype, ((const uint16_t *)from)[i]));
}

/* A block with a copy of `values`, or poison. */
static void *put(struct typed *t, const void *values, size_t n, size_t size)
{
    size_t before = GUARD + t->shift * size, bytes = n * size, all = before + bytes + GUARD;
    struct typed_block *block = calloc(1, sizeof(*block));
    unsigned char *image = malloc(all);

    assert_non_null(block);
    assert_non_null(image);
    memset(image, POISON, all);
    if (values && bytes > 0) {
        memcpy(image + before, values, bytes);
    }
    block->memory = device_put(t->device, image, all);
    block->before = before;
    block->bytes = bytes;
    block->next = t->blocks;
    t->blocks = block;
    free(image);
    return block->memory + before;
}

static void *put_numbers(struct typed *t, enum skrull_dtype dtype, const double *values, size_t n)
{
    void *encoded = malloc(n * sizeof(float) + 1), *tensor;

    assert_non_null(encoded);
    if (values) {
        encode(dtype, values, encoded, n);
    }
    tensor = put(t, values ? encoded : NULL, n, dtype_bytes(dtype));
    free(encoded);
    return tensor;
}

void *typed_tensor(struct typed *t, const double *values, size_t n)
{
    return put_numbers(t, t->dtype, values, n);
}

float *typed_floats(struct typed *t, const double *values, size_t n)
{
    return put_numbers(t, SKRULL_DTYPE_F32, values, n);
}

int32_t *typed_ints(struct typed *t, const int32_t *values, size_t n)
{
    return put(t, values, n, sizeof(int32_t));
}

double *typed_doubles(struct typed *t, const double *values, size_t n)
{
    return put(t, values, n, sizeof(double));
}

static void round_to(enum skrull_dtype dtype, double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float bits;

        encode(dtype, &values[i], &bits, 1);
        values[i] = decode(dtype, &bits, 0);
    }
}

void typed_round(const struct typed *t, double *values, size_t n)
{
    round_to(t->dtype, values, n);
}

double *typed_random_floats(uint64_t *seed, size_t n, double scale)
{
    float *values = kernel_random(seed, n);
    double *doubles = kernel_double(values, n);

    for (size_t i = 0; i < n; i++) {
        doubles[i] *= scale;
    }
    round_to(SKRULL_DTYPE_F32, doubles, n);
    free(values);
    return doubles;
}

double *typed_random(const struct typed *t, uint64_t *seed, size_t n, double scale)
{
    double *values = typed_random_floats(seed, n, scale);

    round_to(t->dtype, values, n);
    return values;
}

static double *read_numbers(const struct typed *t, enum skrull_dtype dtype, const void *tensor,
                            size_t n)
{
    void *image = malloc(n * sizeof(float) + 1);
    double *values = kernel_zeros_double(n);

    assert_non_null(image);
    device_get(t->device, image, tensor, n * dtype_bytes(dtype));
    for (size_t i = 0; i < n; i++) {
        values[i] = decode(dtype, image, i);
    }
    free(image);
    return values;
}

double *typed_read(const struct typed *t, const void *tensor, size_t n)
{
    return read_numbers(t, t->dtype, tensor, n);
}

double *typed_read_floats(const struct typed *t, const float *tensor, size_t n)
{
    return read_numbers(t, SKRULL_DTYPE_F32, tensor, n);
}

void typed_read_double(const struct typed *t, const double *tensor, double *ret)
{
    device_get(t->device, ret, tensor, sizeof(*ret));
}

/* |is - should|: 0 where both are the same infinity or NaN, infinite where one is. */
static double error_of(double is, double should)
{
    bool are_same = (isnan(is) && isnan(should)) ||
                    (isinf(is) && isinf(should) && signbit(is) == signbit(should));
    double error = are_same ? 0.0 : fabs(is - should);

    return isfinite(error) ? error : HUGE_VAL;
}

/* Frees `is`. */
static void compare(struct typed *t, const char *what, double *is, const double *should, size_t n)
{
    double most = 0.0, worst = 0.0;
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        double error = error_of(is[i], should[i]);

        most = isfinite(should[i]) && fabs(should[i]) > most ? fabs(should[i]) : most;
        if (error > worst) {
            worst = error;
            at = i;
        }
    }
    if (worst > t->tolerance * most) {
        fail_msg("%s[%zu of %zu] is %.9g, not %.9g: more than %g x %g off (%s, %s, shift %zu)",
                 what, at, n, is[at], should[at], t->tolerance, most, t->device->ops->backend,
                 dtype_name(t->dtype), t->shift);
    }
    if (worst > 0.0 && worst / most / t->tolerance > t->worst) {
        t->worst = worst / most / t->tolerance;
    }
    free(is);
}

void typed_assert(struct typed *t, const char *what, const void *tensor, const double *should,
                  size_t n)
{
    compare(t, what, typed_read(t, tensor, n), should, n);
}

void typed_assert_floats(struct typed *t, const char *what, const float *tensor,
                         const double *should, size_t n)
{
    compare(t, what, typed_read_floats(t, tensor, n), should, n);
}

/* FNV-1a of a block's bits, 64 at a time; fails if a guard changed. */
static uint64_t hash_block(const struct typed *t, const struct typed_block *block, uint64_t hash)
{
    size_t all = block->before + block->bytes + GUARD;
    unsigned char *image = calloc(1, all + sizeof(uint64_t));

    assert_non_null(image);
    device_get(t->device, image, block->memory, all);
    for (size_t i = 0; i < block->before + GUARD; i++) {
        size_t at = i < block->before ? i : i + block->bytes;

        if (image[at] != POISON) {
            fail_msg("a kernel wrote %td bytes from the start of a tensor of %zu bytes (%s, %s, "
                     "shift %zu)",
                     (ptrdiff_t)at - (ptrdiff_t)block->before, block->bytes,
                     t->device->ops->backend, dtype_name(t->dtype), t->shift);
        }
    }
    for (size_t i = 0; i < all; i += sizeof(uint64_t)) {
        uint64_t word;

        memcpy(&word, image + i, sizeof(word));
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 32;
    }
    free(image);
    return hash;
}

static uint64_t finish(struct typed *t)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    while (t->blocks) {
        struct typed_block *block = t->blocks;

        hash = hash_block(t, block, hash);
        t->blocks = block->next;
        device_free(t->device, block->memory);
        free(block);
    }
    return hash;
}

/* One run; returns the hash of all bits. */
static uint64_t hold_order(struct typed *t, void (*hold)(struct typed *t, const void *arg),
                           const void *arg, int order)
{
    shim_set_order(order);
    hold(t, arg);
    shim_set_order(-1);
    return finish(t);
}

/* Aligned in all orders, which must agree, and off alignment at random; a big case only aligned, in
 * one order. Returns the worst error / tolerance. */
static double hold_dtype(struct typed *t, void (*hold)(struct typed *t, const void *arg),
                         const void *arg, bool is_big)
{
    const struct typed like = *t;
    int n_orders = is_big || kernel_is_quick() ? 1 : ORDERS;
    uint64_t first = hold_order(t, hold, arg, 0);
    double worst = t->worst;

    for (int order = 1; order < n_orders; order++) {
        *t = like;
        if (hold_order(t, hold, arg, order) != first) {
            fail_msg("%s, %s: order %d of threads gives other bits than order 0",
                     t->device->ops->backend, dtype_name(t->dtype), order);
        }
        worst = fmax(worst, t->worst);
    }
    if (!is_big) {
        *t = like;
        t->shift = 1;
        (void)hold_order(t, hold, arg, ORDERS - 1);
        worst = fmax(worst, t->worst);
    }
    return worst;
}

void typed_hold(const char *what, void (*hold)(struct typed *t, const void *arg), const void *arg,
                bool is_big)
{
    if (is_big && kernel_is_quick()) {
        return;
    }
    KERNEL_FOR_DEVICES(device)
    {
        for (int dtype = SKRULL_DTYPE_F32; dtype <= SKRULL_DTYPE_F16; dtype++) {
            struct typed t = {.device = device,
                              .dtype = (enum skrull_dtype)dtype,
                              .tolerance = dtype_tolerance((enum skrull_dtype)dtype)};
            double worst = hold_dtype(&t, hold, arg, is_big);

            printf("# %s, %s, %s: %.2g of the tolerance\n", what, device->ops->backend,
                   dtype_name(t.dtype), worst);
        }
    }
}

/* Packing and unpacking of rows as kernels. */
#include <math.h>

#include "kernels/typed.h"

/* Rows of every width, by a map that leaves some out; widths around vectors and blocks. */
struct typed_rows {
    uint32_t n_rows, width;
    size_t in_stride, out_stride;
};

/* Every third row is nobody's; the others are those of a permutation, backwards. */
static int32_t *map_of(uint32_t n_rows)
{
    int32_t *map = calloc(n_rows + 1, sizeof(*map));

    assert_non_null(map);
    for (uint32_t i = 0; i < n_rows; i++) {
        map[i] = i % 3 == 2 ? -1 : (int32_t)(n_rows - 1 - i);
    }
    return map;
}

static void hold_rows(struct typed *t, const void *arg)
{
    const struct typed_rows *c = arg;
    size_t in_stride = c->in_stride ? c->in_stride : c->width;
    size_t out_stride = c->out_stride ? c->out_stride : c->width;
    size_t n_in = c->n_rows * in_stride, n_out = c->n_rows * out_stride;
    uint64_t seed = 3;
    double *in = typed_random(t, &seed, n_in, 1), *packed = kernel_zeros_double(n_out);
    double *unpacked = kernel_zeros_double(n_out);
    int32_t *map = map_of(c->n_rows);
    void *out = typed_tensor(t, NULL, n_out), *back = typed_tensor(t, NULL, n_out);
    struct skrull_rows rows = {.dtype = t->dtype,
                               .n_rows = c->n_rows,
                               .width = c->width,
                               .row = typed_ints(t, map, c->n_rows),
                               .in = typed_tensor(t, in, n_in),
                               .out = out,
                               .in_stride = c->in_stride,
                               .out_stride = c->out_stride};

    for (size_t i = 0; i < n_out; i++) {
        packed[i] = unpacked[i] = (double)NAN;
    }
    for (size_t row = 0; row < c->n_rows; row++) {
        for (size_t i = 0; i < c->width; i++) {
            packed[row * out_stride + i] =
                map[row] < 0 ? 0.0 : in[(size_t)map[row] * in_stride + i];
            if (map[row] >= 0) {
                unpacked[(size_t)map[row] * out_stride + i] = in[row * in_stride + i];
            }
        }
    }
    t->tolerance = 0.0;
    TYPED_RUN(t, pack_rows, &rows);
    typed_assert(t, "packed", out, packed, n_out);
    rows.out = back;
    TYPED_RUN(t, unpack_rows, &rows);
    typed_assert(t, "unpacked", back, unpacked, n_out);
    free(in);
    free(packed);
    free(unpacked);
    free(map);
}

static void test_rows__every_dtype_and_width(void **state)
{
    static const struct typed_rows cases[] = {
        {0, 8, 0, 0},    {1, 1, 0, 0},     {3, 7, 0, 0},     {5, 8, 0, 0},    {5, 9, 16, 24},
        {65, 64, 0, 72}, {33, 65, 80, 65}, {9, 255, 256, 0}, {4, 2047, 0, 0}, {3, 2049, 2056, 0},
        {7, 3584, 0, 0}, {257, 8, 8, 16},  {300, 1, 2, 3}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        typed_hold("rows", hold_rows, &cases[i], false);
    }
}

/* More rows than a grid has blocks for. */
static void test_rows__more_than_a_grid(void **state)
{
    static const struct typed_rows many = {300000, 8, 0, 0};

    (void)state;
    typed_hold("many rows", hold_rows, &many, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows__every_dtype_and_width),
        cmocka_unit_test(test_rows__more_than_a_grid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Packing and unpacking of rows. */
#include "kernels/kernel.h"

static void assert_floats(const float *is, const float *should, size_t n)
{
    assert_memory_equal(is, should, n * sizeof(float));
}

static void test_pack_rows__takes_rows_in_order_of_the_map(void **state)
{
    static const float in[] = {1, 2, 3, 4, 5, 6};
    static const int32_t map[] = {2, -1, 0, 2};
    static const float should[] = {5, 6, 0, 0, 1, 2, 5, 6};

    (void)state;
    KERNEL_FOR_BACKENDS(ops)
    {
        float out[8] = {9, 9, 9, 9, 9, 9, 9, 9};
        struct skrull_rows rows = {
            .dtype = SKRULL_DTYPE_F32, .n_rows = 4, .width = 2, .row = map, .in = in, .out = out};

        KERNEL_RUN(ops, pack_rows, &rows);
        assert_floats(out, should, 8);
    }
}

static void test_unpack_rows__leaves_other_rows(void **state)
{
    static const float in[] = {1, 2, 3, 4, 5, 6};
    static const int32_t map[] = {3, -1, 0};
    static const float should[] = {5, 6, 9, 9, 9, 9, 1, 2};

    (void)state;
    KERNEL_FOR_BACKENDS(ops)
    {
        float out[8] = {9, 9, 9, 9, 9, 9, 9, 9};
        struct skrull_rows rows = {
            .dtype = SKRULL_DTYPE_F32, .n_rows = 3, .width = 2, .row = map, .in = in, .out = out};

        KERNEL_RUN(ops, unpack_rows, &rows);
        assert_floats(out, should, 8);
    }
}

static void test_pack_rows__parts_of_wider_rows(void **state)
{
    static const float in[] = {1, 2, 3, 4, 5, 6};
    static const int32_t map[] = {1, 0};
    static const float packed[] = {4, 5, 9, 9, 1, 2, 9, 9}, unpacked[] = {1, 2, 9, 4, 5, 9};

    (void)state;
    KERNEL_FOR_BACKENDS(ops)
    {
        float out[8] = {9, 9, 9, 9, 9, 9, 9, 9}, back[6] = {9, 9, 9, 9, 9, 9};
        struct skrull_rows rows = {.dtype = SKRULL_DTYPE_F32,
                                   .n_rows = 2,
                                   .width = 2,
                                   .row = map,
                                   .in = in,
                                   .out = out,
                                   .in_stride = 3,
                                   .out_stride = 4};

        KERNEL_RUN(ops, pack_rows, &rows);
        assert_floats(out, packed, 8);
        rows.in = out;
        rows.out = back;
        rows.in_stride = 4;
        rows.out_stride = 3;
        KERNEL_RUN(ops, unpack_rows, &rows);
        assert_floats(back, unpacked, 6);
    }
}

static void test_pack_rows__refuses_other_dtypes(void **state)
{
    (void)state;
    KERNEL_FOR_BACKENDS(ops)
    {
        struct skrull_rows rows = {.dtype = SKRULL_DTYPE_F16};
        struct skrull_error err = {0};

        assert_int_equal(ops->pack_rows(&rows, NULL, &err), SKRULL_ERR_UNIMPLEMENTED);
        assert_non_null(strstr(err.message, "float32"));
        assert_int_equal(ops->unpack_rows(&rows, NULL, NULL), SKRULL_ERR_UNIMPLEMENTED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack_rows__takes_rows_in_order_of_the_map),
        cmocka_unit_test(test_unpack_rows__leaves_other_rows),
        cmocka_unit_test(test_pack_rows__parts_of_wider_rows),
        cmocka_unit_test(test_pack_rows__refuses_other_dtypes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

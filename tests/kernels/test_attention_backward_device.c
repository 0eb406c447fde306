/* The kernels of attention backward. */
#include "kernels/attention_device.h"
#include "kernels/attention_matrix.h"

static void test_attention_backward__mixed(void **state)
{
    (void)state;
    attention_matrix_mixed(true);
}

static void test_attention_backward__tile_edges(void **state)
{
    (void)state;
    attention_matrix_tile_edges(true);
}

static void test_attention_backward__whole(void **state)
{
    (void)state;
    attention_matrix_whole(true);
}

static void test_attention_backward__long(void **state)
{
    (void)state;
    attention_matrix_long(true);
}

static void test_attention_backward__nothing(void **state)
{
    (void)state;
    attention_matrix_nothing(true);
}

/* Runs backward for keys [first, first + n) of the case's one sequence only. */
static void run_part(struct attention_device *t, size_t first, size_t n)
{
    struct skrull_attention_backward part = t->params;
    const int32_t rows[2] = {0, (int32_t)n};
    size_t width = (size_t)part.forward.kv_heads * part.forward.head_dim;
    int32_t *cu_rows = device_put(t->device, rows, sizeof(rows));

    part.forward.k_cu_rows = cu_rows;
    part.forward.k_position += first;
    part.forward.k = (const uint16_t *)part.forward.k + first * width;
    part.forward.v = (const uint16_t *)part.forward.v + first * width;
    part.forward.max_k_rows = (uint32_t)n;
    part.dk += first * width;
    part.dv += first * width;
    KERNEL_RUN(t->device->ops, attention_backward, &part);
    device_free(t->device, cu_rows);
}

/* out and lse are those over all keys: each part adds its share, as the parts of a ring do. */
static void test_attention_backward__keys_in_two_parts(void **state)
{
    static const struct attention_rows rows[] = {{100, SIDE_WHOLE, SIDE_WHOLE}};
    struct attention_shape shape = {4, 2, 96, true, 0};
    struct attention_run run = {.dtype = SKRULL_DTYPE_BF16, .is_backward = true, .has_dlse = true};
    struct attention_case c;

    (void)state;
    attention_case_init(&c, &shape, rows, 1, 5);
    KERNEL_FOR_DEVICES(device)
    {
        struct attention_device t;

        attention_device_init(&t, device, &c, &run);
        run_part(&t, 37, c.n_k - 37);
        run_part(&t, 0, 37);
        attention_device_check_backward(&t);
        attention_device_deinit(&t);
    }
    attention_case_deinit(&c);
}

static void test_attention_backward__refuses(void **state)
{
    (void)state;
    KERNEL_FOR_DEVICES(device)
    {
        const struct skrull_attention_backward good = {
            .forward = {
                .dtype = SKRULL_DTYPE_F16, .heads = 2, .kv_heads = 1, .head_dim = 64, .scale = 1}};
        struct skrull_attention_backward bad = good;
        struct skrull_error err = {0};

        assert_int_equal(device->ops->attention_backward(&good, NULL, NULL), 0);
        bad.forward.head_dim = 80;
        assert_int_equal(device->ops->attention_backward(&bad, NULL, &err),
                         SKRULL_ERR_UNIMPLEMENTED);
        assert_non_null(strstr(err.message, "64, 96 and 128, not 80"));
        bad = good;
        bad.dout_stride = 132;
        assert_int_equal(device->ops->attention_backward(&bad, NULL, &err),
                         SKRULL_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "dout must start"));
        bad = good;
        bad.dk = (float *)(uintptr_t)8;
        assert_int_equal(device->ops->attention_backward(&bad, NULL, &err),
                         SKRULL_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "dk must start"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention_backward__mixed),
        cmocka_unit_test(test_attention_backward__tile_edges),
        cmocka_unit_test(test_attention_backward__whole),
        cmocka_unit_test(test_attention_backward__long),
        cmocka_unit_test(test_attention_backward__nothing),
        cmocka_unit_test(test_attention_backward__keys_in_two_parts),
        cmocka_unit_test(test_attention_backward__refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

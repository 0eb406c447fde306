/* The kernel of attention forward. */
#include "kernels/attention_device.h"
#include "kernels/attention_matrix.h"

static void test_attention_forward__mixed(void **state)
{
    (void)state;
    attention_matrix_mixed(false);
}

static void test_attention_forward__tile_edges(void **state)
{
    (void)state;
    attention_matrix_tile_edges(false);
}

static void test_attention_forward__whole(void **state)
{
    (void)state;
    attention_matrix_whole(false);
}

static void test_attention_forward__long(void **state)
{
    (void)state;
    attention_matrix_long(false);
}

static void test_attention_forward__nothing(void **state)
{
    (void)state;
    attention_matrix_nothing(false);
}

/* The message names the limit. */
static void refuses(const struct device *device, const struct skrull_attention *attention, int code,
                    const char *word)
{
    struct skrull_error err = {0};

    assert_int_equal(device->ops->attention_forward(attention, NULL, &err), code);
    if (strstr(err.message, word) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.message, word);
    }
}

static void test_attention_forward__refuses(void **state)
{
    static const struct attention_rows rows[] = {{4, SIDE_WHOLE, SIDE_WHOLE}};
    struct attention_shape shape = {4, 2, 64, true, 0};
    struct attention_case c;

    (void)state;
    attention_case_init_forward(&c, &shape, rows, 1, 9);
    KERNEL_FOR_DEVICES(device)
    {
        struct skrull_attention good = attention_case_forward(&c), bad;

        good.dtype = SKRULL_DTYPE_BF16;
        good.q = good.k = good.v = good.out = NULL;
        bad = good;
        bad.dtype = SKRULL_DTYPE_F32;
        refuses(device, &bad, SKRULL_ERR_UNIMPLEMENTED, "bf16 or fp16");
        bad = good;
        bad.head_dim = 72;
        refuses(device, &bad, SKRULL_ERR_UNIMPLEMENTED, "64, 96 and 128");
        bad = good;
        bad.kv_heads = 3;
        refuses(device, &bad, SKRULL_ERR_INVALID_ARGUMENT, "3 key heads");
        bad = good;
        bad.kv_heads = 0;
        refuses(device, &bad, SKRULL_ERR_INVALID_ARGUMENT, "0 key heads");
        bad = good;
        bad.scale = 0;
        refuses(device, &bad, SKRULL_ERR_UNIMPLEMENTED, "scale");
        bad = good;
        bad.k_stride = 132;
        refuses(device, &bad, SKRULL_ERR_INVALID_ARGUMENT, "k must start");
        bad = good;
        bad.v = (const void *)(uintptr_t)8;
        refuses(device, &bad, SKRULL_ERR_INVALID_ARGUMENT, "v must start");
        bad = good;
        bad.n_sequences = 1U << 30;
        refuses(device, &bad, SKRULL_ERR_INVALID_ARGUMENT, "split the batch");
        bad = good;
        bad.max_k_rows = INT32_MAX;
        refuses(device, &bad, SKRULL_ERR_INVALID_ARGUMENT, "split the batch");
    }
    attention_case_deinit(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention_forward__mixed),
        cmocka_unit_test(test_attention_forward__tile_edges),
        cmocka_unit_test(test_attention_forward__whole),
        cmocka_unit_test(test_attention_forward__long),
        cmocka_unit_test(test_attention_forward__nothing),
        cmocka_unit_test(test_attention_forward__refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

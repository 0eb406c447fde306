/* The kernels of attention backward. */
#include "kernels/attention_device.h"

static const struct attention_rows mixed[] = {
    {1, SIDE_WHOLE, SIDE_WHOLE},    {70, SIDE_WHOLE, SIDE_WHOLE},  {100, SIDE_BEGIN, SIDE_END},
    {100, SIDE_END, SIDE_BEGIN},    {90, SIDE_FIRST, SIDE_SECOND}, {90, SIDE_SECOND, SIDE_FIRST},
    {61, SIDE_SECOND, SIDE_SECOND}, {40, SIDE_NONE, SIDE_WHOLE},   {40, SIDE_WHOLE, SIDE_NONE},
    {9, SIDE_PADDING, SIDE_WHOLE},  {9, SIDE_WHOLE, SIDE_PADDING}, {77, SIDE_HOLES, SIDE_HOLES},
};

static void hold(const struct attention_shape *shape, const struct attention_rows *rows,
                 uint32_t n_sequences, enum skrull_dtype dtype, size_t gap)
{
    struct attention_run run = {.dtype = dtype, .gap = gap, .is_backward = true, .has_dlse = true};
    struct attention_case c;

    attention_case_init(&c, shape, rows, n_sequences, 7 + shape->head_dim + gap);
    KERNEL_FOR_DEVICES(device)
    {
        attention_device_hold(device, &c, &run);
    }
    attention_case_deinit(&c);
}

static void test_attention_backward__batch(void **state)
{
    (void)state;
    for (uint32_t d = 0; d < 3; d++) {
        struct attention_shape shape = {2, 1, d * 32 + 64, true, 0};

        hold(&shape, mixed, 12, d == 1 ? SKRULL_DTYPE_F16 : SKRULL_DTYPE_BF16, d * 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention_backward__batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

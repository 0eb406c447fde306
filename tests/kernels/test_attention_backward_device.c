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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention_backward__mixed),
        cmocka_unit_test(test_attention_backward__tile_edges),
        cmocka_unit_test(test_attention_backward__whole),
        cmocka_unit_test(test_attention_backward__long),
        cmocka_unit_test(test_attention_backward__nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

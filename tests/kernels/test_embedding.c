/* Look-up of embeddings and the sum of their gradients. */
#include "kernels/kernel.h"

static const float table[] = {1, 2, 3, 4, 5, 6};
static const int32_t tokens[] = {2, 0, -1, 2};

static void test_embedding_forward__looks_up(void **state)
{
    static const float should[] = {5, 6, 1, 2, 0, 0, 5, 6};

    (void)state;
    KERNEL_FOR_BACKENDS(ops)
    {
        float out[8] = {9, 9, 9, 9, 9, 9, 9, 9};
        struct skrull_embedding embedding = {.dtype = SKRULL_DTYPE_F32,
                                             .n_rows = 4,
                                             .width = 2,
                                             .vocabulary = 3,
                                             .token = tokens,
                                             .table = table,
                                             .out = out};

        KERNEL_RUN(ops, embedding_forward, &embedding);
        assert_memory_equal(out, should, sizeof(should));
    }
}

static void test_embedding_backward__sums_rows_of_a_token(void **state)
{
    static const float dout[] = {1, 2, 3, 4, 100, 100, 5, 6};
    static const float should[] = {4, 4, 1, 0, 6, 8};

    (void)state;
    KERNEL_FOR_BACKENDS(ops)
    {
        float dtable[] = {1, 0, 1, 0, 0, 0};
        struct skrull_embedding_backward embedding = {.dtype = SKRULL_DTYPE_F32,
                                                      .n_rows = 4,
                                                      .width = 2,
                                                      .vocabulary = 3,
                                                      .token = tokens,
                                                      .dout = dout,
                                                      .dtable = dtable};

        KERNEL_RUN(ops, embedding_backward, &embedding);
        assert_memory_equal(dtable, should, sizeof(should));
    }
}

static void test_embedding__refuses_unknown_tokens(void **state)
{
    (void)state;
    KERNEL_FOR_BACKENDS(ops)
    {
        float out[8] = {0}, dtable[6] = {0};
        struct skrull_embedding embedding = {.dtype = SKRULL_DTYPE_F32,
                                             .n_rows = 4,
                                             .width = 2,
                                             .vocabulary = 2,
                                             .token = tokens,
                                             .table = table,
                                             .out = out};
        struct skrull_embedding_backward backward = {.dtype = SKRULL_DTYPE_F32,
                                                     .n_rows = 4,
                                                     .width = 2,
                                                     .vocabulary = 2,
                                                     .token = tokens,
                                                     .dout = out,
                                                     .dtable = dtable};
        struct skrull_error err = {0};

        assert_int_equal(ops->embedding_forward(&embedding, NULL, &err),
                         SKRULL_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "token 2 in a vocabulary of 2"));
        assert_int_equal(ops->embedding_backward(&backward, NULL, NULL),
                         SKRULL_ERR_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embedding_forward__looks_up),
        cmocka_unit_test(test_embedding_backward__sums_rows_of_a_token),
        cmocka_unit_test(test_embedding__refuses_unknown_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

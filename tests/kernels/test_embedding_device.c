/* Look-up of embeddings and the sum of their gradients as kernels. */
#include <math.h>

#include "kernels/typed.h"

/* Every dtype; tokens that come often and tokens of one row, unknown ones and padding. */
struct typed_embedding {
    uint32_t n_rows, width, vocabulary;
};

static int32_t *tokens_of(const struct typed_embedding *c)
{
    int32_t *token = calloc(c->n_rows + 1, sizeof(*token));
    uint64_t seed = 5;

    assert_non_null(token);
    for (uint32_t i = 0; i < c->n_rows; i++) {
        token[i] = kernel_below(&seed, 2) ? (int32_t)kernel_below(&seed, c->vocabulary) : 1;
    }
    if (c->n_rows > 3) {
        token[2] = -1;
        token[c->n_rows - 1] = (int32_t)c->vocabulary;
    }
    return token;
}

static void hold_lookup(struct typed *t, const void *arg)
{
    const struct typed_embedding *c = arg;
    size_t n = (size_t)c->n_rows * c->width, n_table = (size_t)c->vocabulary * c->width;
    uint64_t seed = 16;
    double *table = typed_random(t, &seed, n_table, 1), *dout = typed_random(t, &seed, n, 1);
    double *dtable = typed_random_floats(&seed, n_table, 1), *out = kernel_zeros_double(n);
    int32_t *token = tokens_of(c);
    struct skrull_embedding forward = {.dtype = t->dtype,
                                       .n_rows = c->n_rows,
                                       .width = c->width,
                                       .vocabulary = c->vocabulary,
                                       .token = typed_ints(t, token, c->n_rows),
                                       .table = typed_tensor(t, table, n_table),
                                       .out = typed_tensor(t, NULL, n)};
    struct skrull_embedding_backward backward = {.dtype = t->dtype,
                                                 .n_rows = c->n_rows,
                                                 .width = c->width,
                                                 .vocabulary = c->vocabulary,
                                                 .token = forward.token,
                                                 .dout = typed_tensor(t, dout, n),
                                                 .dtable = typed_floats(t, dtable, n_table)};

    for (size_t at = 0; at < n; at++) {
        int32_t is = token[at / c->width];
        size_t in_table = (size_t)(is < 0 ? 0 : is) * c->width + at % c->width;

        if (is < 0 || (uint32_t)is >= c->vocabulary) {
            out[at] = is < 0 ? 0.0 : (double)NAN;
            continue;
        }
        out[at] = table[in_table];
        dtable[in_table] += dout[at];
    }
    TYPED_RUN(t, embedding_forward, &forward);
    typed_assert(t, "out", forward.out, out, n);
    TYPED_RUN(t, embedding_backward, &backward);
    t->tolerance = 1e-5; /* sums of what is given, in float */
    typed_assert_floats(t, "dtable", backward.dtable, dtable, n_table);
    free(table);
    free(dout);
    free(dtable);
    free(out);
    free(token);
}

static void test_embedding__every_dtype_and_width(void **state)
{
    static const struct typed_embedding cases[] = {
        {0, 8, 5},     {1, 1, 2},     {5, 7, 3},      {31, 8, 40},  {33, 64, 7},  {64, 255, 9},
        {65, 1024, 4}, {70, 1025, 3}, {300, 16, 100}, {9, 3584, 3}, {12, 2056, 6}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        typed_hold("embedding", hold_lookup, &cases[i], false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embedding__every_dtype_and_width),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

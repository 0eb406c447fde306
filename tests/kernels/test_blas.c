/*
 * Products: the handles that threads keep, what is refused, what a failure says; and that the
 * tests' cuBLAS, which the kernels' tests trust, catches what cuBLAS would not take.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cublas_v2.h>

#include "blas.h"
#include "fake_cublas/fake_cublas.h"
#include "kernels/kernel.h"

static const float two[] = {1, 2, 3, 4};

/* [2][2] = two x two. */
static struct blas_gemm product_into(float *c)
{
    return (struct blas_gemm){.dtype = SKRULL_DTYPE_F32,
                              .c_dtype = SKRULL_DTYPE_F32,
                              .m = 2,
                              .n = 2,
                              .k = 2,
                              .a = two,
                              .b = two,
                              .c = c,
                              .a_stride = 2,
                              .b_stride = 2,
                              .c_stride = 2};
}

static void test_gemm__of_rows_as_they_lie(void **state)
{
    static const struct {
        bool a_transposed, b_transposed, add;
        float should[4];
    } cases[] = {{false, false, false, {7, 10, 15, 22}},
                 {false, true, false, {5, 11, 11, 25}},
                 {true, false, true, {11, 15, 15, 21}},
                 {true, true, true, {8, 16, 11, 23}}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        float c[] = {1, 1, 1, 1};
        struct blas_gemm product = product_into(c);

        product.a_transposed = cases[i].a_transposed;
        product.b_transposed = cases[i].b_transposed;
        product.add = cases[i].add;
        assert_int_equal(blas_gemm_shim(&product, NULL, NULL), 0);
        assert_memory_equal(c, cases[i].should, sizeof(c));
    }
}

/* Products on six streams, twice; returns how many handles that took. */
static void *multiply_on_streams(void *arg)
{
    static char streams[6];
    long *ret_handles = arg, before = fake_cublas_handles();

    for (size_t i = 0; i < 12; i++) {
        float c[4];
        struct blas_gemm product = product_into(c);

        if (blas_gemm_shim(&product, &streams[i % 6], NULL)) {
            return NULL;
        }
    }
    *ret_handles = fake_cublas_handles() - before;
    return NULL;
}

static void test_gemm__threads_keep_few_handles_and_free_them(void **state)
{
    long before = fake_cublas_handles();

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        long n_handles = -1;
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, multiply_on_streams, &n_handles), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(n_handles, 4);
    }
    assert_int_equal(fake_cublas_handles(), before);
}

static void test_gemm__one_handle_for_one_stream(void **state)
{
    float c[4];
    struct blas_gemm product = product_into(c);
    long n_handles;

    (void)state;
    assert_int_equal(blas_gemm_shim(&product, NULL, NULL), 0);
    n_handles = fake_cublas_handles();
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(blas_gemm_shim(&product, NULL, NULL), 0);
    }
    assert_int_equal(fake_cublas_handles(), n_handles);
}

static void test_gemm__says_what_failed(void **state)
{
    float c[4] = {9, 9, 9, 9};
    struct blas_gemm product = product_into(c);
    struct skrull_error err = {0};

    (void)state;
    fake_cublas_fail_after(1);
    assert_int_equal(blas_gemm_shim(&product, NULL, NULL), 0);
    assert_int_equal(blas_gemm_shim(&product, NULL, &err), SKRULL_ERR_INTERNAL);
    assert_string_equal(err.message, "cublasGemmEx: the product failed");
    assert_int_equal(blas_gemm_shim(&product, NULL, NULL), 0); /* once */
}

static void test_gemm__refuses_what_has_no_int(void **state)
{
    float c[4];
    struct blas_gemm product = product_into(c);
    struct skrull_error err = {0};

    (void)state;
    product.m = UINT32_C(1) << 31;
    assert_int_equal(blas_gemm_shim(&product, NULL, &err), SKRULL_ERR_UNIMPLEMENTED);
    assert_non_null(strstr(err.message, "2147483648 x 2 x 2"));
    product = product_into(c);
    product.b_stride = (size_t)1 << 31;
    assert_int_equal(blas_gemm_shim(&product, NULL, NULL), SKRULL_ERR_UNIMPLEMENTED);
    product = product_into(c);
    product.c_dtype = (enum skrull_dtype)7;
    assert_int_equal(blas_gemm_shim(&product, NULL, &err), SKRULL_ERR_UNIMPLEMENTED);
    assert_non_null(strstr(err.message, "dtype 7"));
}

/* An operator of several products hands the failure of each on. */
static void test_operators__hand_failures_on(void **state)
{
    const struct ops *ops = ops_find("shim");
    float in[4] = {0}, weight[4] = {0}, out[4], lse[2], logits[4];
    float sums[4] = {0}, weights[2] = {1, 1};
    int32_t target[2] = {0, 1};
    double loss = 0;
    struct skrull_linear_backward linear = {.dtype = SKRULL_DTYPE_F32,
                                            .n_rows = 2,
                                            .n_in = 2,
                                            .n_out = 2,
                                            .in = in,
                                            .weight = weight,
                                            .dout = in,
                                            .din = out,
                                            .dweight = sums};
    struct skrull_cross_entropy_backward head = {.forward = {.dtype = SKRULL_DTYPE_F32,
                                                             .n_rows = 2,
                                                             .width = 2,
                                                             .vocabulary = 2,
                                                             .chunk = 1,
                                                             .in = in,
                                                             .head = weight,
                                                             .target = target,
                                                             .loss_weight = weights,
                                                             .logits = logits,
                                                             .lse = lse,
                                                             .loss = &loss},
                                                 .din = out,
                                                 .dhead = sums};

    (void)state;
    assert_non_null(ops);
    for (long i = 0; i < 2; i++) {
        fake_cublas_fail_after(i);
        assert_int_equal(ops->linear_backward(&linear, NULL, NULL), SKRULL_ERR_INTERNAL);
        fake_cublas_fail_after(i);
        assert_int_equal(ops->cross_entropy_forward(&head.forward, NULL, NULL),
                         SKRULL_ERR_INTERNAL);
    }
    assert_int_equal(ops->cross_entropy_forward(&head.forward, NULL, NULL), 0);
    for (long i = 0; i < 6; i++) {
        fake_cublas_fail_after(i);
        assert_int_equal(ops->cross_entropy_backward(&head, NULL, NULL), SKRULL_ERR_INTERNAL);
    }
    assert_int_equal(ops->cross_entropy_backward(&head, NULL, NULL), 0);
    fake_cublas_fail_after(-1);
}

/* What the fake must not take: one argument wrong at a time. */
enum wrong {
    RIGHT,
    NO_STREAM,
    REDUCED,
    NO_SIZE,
    SHORT_A,
    SHORT_B,
    SHORT_C,
    TYPES,
    NO_C,
    DESTROYED
};

static void call(enum wrong wrong)
{
    const float one = 1, zero = 0;
    float c[4];
    cublasHandle_t handle;
    cudaDataType b_type = wrong == TYPES ? CUDA_R_16BF : CUDA_R_32F;
    cublasMath_t mode =
        wrong == REDUCED ? CUBLAS_DEFAULT_MATH : CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;

    (void)cublasCreate(&handle);
    (void)cublasSetMathMode(handle, mode);
    if (wrong != NO_STREAM) {
        (void)cublasSetStream(handle, NULL);
    }
    if (wrong == DESTROYED) {
        (void)cublasDestroy(handle);
        handle = NULL;
    }
    (void)cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, 2, 2, wrong == NO_SIZE ? 0 : 2, &one, two,
                       CUDA_R_32F, wrong == SHORT_A ? 1 : 2, two, b_type, wrong == SHORT_B ? 1 : 2,
                       &zero, wrong == NO_C ? NULL : c, CUDA_R_32F, wrong == SHORT_C ? 1 : 2,
                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    (void)cublasDestroy(handle);
}

static void test_fake__ends_the_process_at_a_wrong_argument(void **state)
{
    (void)state;
    for (int wrong = RIGHT; wrong <= DESTROYED; wrong++) {
        pid_t child = fork();
        int status;

        assert_true(child >= 0);
        if (child == 0) {
            (void)signal(SIGABRT, SIG_DFL); /* not cmocka's */
            (void)close(STDERR_FILENO);
            call((enum wrong)wrong);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(wrong == RIGHT ? WIFEXITED(status)
                                   : WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm__of_rows_as_they_lie),
        cmocka_unit_test(test_gemm__threads_keep_few_handles_and_free_them),
        cmocka_unit_test(test_gemm__one_handle_for_one_stream),
        cmocka_unit_test(test_gemm__says_what_failed),
        cmocka_unit_test(test_gemm__refuses_what_has_no_int),
        cmocka_unit_test(test_operators__hand_failures_on),
        cmocka_unit_test(test_fake__ends_the_process_at_a_wrong_argument),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Errors as gRPC statuses. */
#include "rpc/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_status_code__is_the_canonical_one(void **state)
{
    static const struct {
        int code;
        grpc_status_code status;
    } cases[] = {
        {SKRULL_ERR_CANCELLED, GRPC_STATUS_CANCELLED},
        {SKRULL_ERR_INVALID_ARGUMENT, GRPC_STATUS_INVALID_ARGUMENT},
        {SKRULL_ERR_NOT_FOUND, GRPC_STATUS_NOT_FOUND},
        {SKRULL_ERR_ALREADY_EXISTS, GRPC_STATUS_ALREADY_EXISTS},
        {SKRULL_ERR_RESOURCE_EXHAUSTED, GRPC_STATUS_RESOURCE_EXHAUSTED},
        {SKRULL_ERR_FAILED_PRECONDITION, GRPC_STATUS_FAILED_PRECONDITION},
        {SKRULL_ERR_OUT_OF_RANGE, GRPC_STATUS_OUT_OF_RANGE},
        {SKRULL_ERR_UNIMPLEMENTED, GRPC_STATUS_UNIMPLEMENTED},
        {SKRULL_ERR_UNAVAILABLE, GRPC_STATUS_UNAVAILABLE},
        {SKRULL_ERR_DATA_LOSS, GRPC_STATUS_DATA_LOSS},
        {SKRULL_ERR_UNAUTHENTICATED, GRPC_STATUS_UNAUTHENTICATED},
        {0, GRPC_STATUS_INTERNAL},
        {1, GRPC_STATUS_INTERNAL},
        {-17, GRPC_STATUS_INTERNAL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct skrull_error err = {.code = cases[i].code};

        assert_int_equal(status_code(&err), cases[i].status);
    }
}

static void test_status_details__message_or_the_code_in_words(void **state)
{
    struct skrull_error err = {.code = SKRULL_ERR_NOT_FOUND, .message = "no job x"};
    grpc_slice slice = status_details(&err);

    (void)state;
    assert_int_equal(GRPC_SLICE_LENGTH(slice), 8);
    assert_memory_equal(GRPC_SLICE_START_PTR(slice), "no job x", 8);
    grpc_slice_unref(slice);
    err.message[0] = '\0';
    slice = status_details(&err);
    assert_int_equal(GRPC_SLICE_LENGTH(slice), strlen("not found"));
    grpc_slice_unref(slice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_code__is_the_canonical_one),
        cmocka_unit_test(test_status_details__message_or_the_code_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

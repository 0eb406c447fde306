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

/* The longest message of the widest bytes, with all details: clients refuse trailers over 8 KiB. */
static void test_status_metadata__fits_into_trailers_whatever_the_message(void **state)
{
    static const char *const methods[] = {"CreateJob", "GetJob", NULL};

    (void)state;
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        struct skrull_error err = {.code = SKRULL_ERR_INVALID_ARGUMENT, .limit = UINT64_MAX};
        grpc_metadata metadata;
        grpc_slice details;

        memset(err.message, 0xff, sizeof(err.message) - 1);
        memcpy(err.message, "name: ", 6);
        details = status_details(&err);
        assert_int_equal(status_metadata(&err, methods[i], &metadata), 1);
        assert_true(GRPC_SLICE_LENGTH(details) * 3 + GRPC_SLICE_LENGTH(metadata.value) * 4 / 3 <
                    7168);
        assert_memory_equal(GRPC_SLICE_START_PTR(metadata.key), "grpc-status-details-bin", 23);
        grpc_slice_unref(metadata.value);
        grpc_slice_unref(details);
    }
}

static void test_status_metadata__retry_while_draining(void **state)
{
    struct skrull_error err;
    grpc_metadata metadata;

    (void)state;
    for (int i = 0; i < 2; i++) {
        (void)skrull_error_because(&err, SKRULL_ERR_UNAVAILABLE,
                                   i ? SKRULL_REASON_DRAINING : SKRULL_REASON_NONE, 0, "x");
        assert_int_equal(status_metadata(&err, "GetJob", &metadata), 1);
        assert_int_equal(memmem(GRPC_SLICE_START_PTR(metadata.value),
                                GRPC_SLICE_LENGTH(metadata.value), "RetryInfo", 9) != NULL,
                         i);
        grpc_slice_unref(metadata.value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_code__is_the_canonical_one),
        cmocka_unit_test(test_status_details__message_or_the_code_in_words),
        cmocka_unit_test(test_status_metadata__fits_into_trailers_whatever_the_message),
        cmocka_unit_test(test_status_metadata__retry_while_draining),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

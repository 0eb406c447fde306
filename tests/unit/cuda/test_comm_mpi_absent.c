/* A build without MPI says what is missing. (The file is compiled here in every build.) */
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "comm.h"

static void test_comm_mpi__says_what_to_install(void **state)
{
    struct skrull_comm *comm = NULL;
    struct skrull_error err;

    (void)state;
    assert_int_equal(skrull_comm_mpi(1000, &comm, &err), SKRULL_ERR_UNIMPLEMENTED);
    assert_int_equal(err.code, SKRULL_ERR_UNIMPLEMENTED);
    assert_non_null(strstr(err.message, "libopenmpi-dev"));
    assert_null(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comm_mpi__says_what_to_install),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which URLs name a store, and numbers that no store takes. */
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "unit/store/state_folder.h"

static void test_store_open__refused_urls(void **state)
{
    static const struct {
        const char *url, *says;
    } cases[] = {
        {"", "names no kind of store"},
        {"sqlite", "names no kind of store"},
        {"sqlit:/tmp/x", "names no kind of store"},
        {"sqlite3:/tmp/x", "names no kind of store"},
        {"/var/lib/state.db", "names no kind of store"},
        {"sqlite:", "names no file"},
        {"sqlite:/tmp/", "names no file"},
        {"etcd://localhost:2379/skrull", "not built yet"},
    };
    struct skrull_error err;
    struct store *store = NULL;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        memset(&err, 0, sizeof(err));
        assert_int_equal(store_open(cases[i].url, &store, &err), SKRULL_ERR_INVALID_ARGUMENT);
        if (!strstr(err.message, cases[i].says) || !strstr(err.message, "sqlite:PATH")) {
            fail_msg("%s: %s", cases[i].url, err.message);
        }
    }
    assert_null(store);
}

static void test_store_give_out__past_63_bits(void **state)
{
    struct store *store = state_folder_open(*state);
    struct skrull_error err = {0};
    char uid[33];

    state_folder_put_job(store, "job", 'a', 1);
    state_folder_uid('a', uid);
    assert_int_equal(store_give_out(store, uid, (uint64_t)INT64_MAX, &err), 0);
    assert_int_equal(store_give_out(store, uid, (uint64_t)INT64_MAX + 1, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "9223372036854775808"));
    store_close(store);
}

static void test_store_close__null(void **state)
{
    (void)state;
    store_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_open__refused_urls),
        cmocka_unit_test_setup_teardown(test_store_give_out__past_63_bits, state_folder_setup,
                                        state_folder_teardown),
        cmocka_unit_test(test_store_close__null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Every method of the protos has its row, and no row is without a method. */
#include "rpc/method.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Calls `fn` with the path of each "rpc NAME(" of a proto file. */
static size_t each_method(const char *file, void (*fn)(const char *path))
{
    char path[1024], line[512], package[128] = "", service[128] = "", name[128], method[512];
    const char *source = getenv("SKRULL_TEST_DATA");
    size_t n = 0;
    FILE *proto;

    assert_non_null(source);
    (void)snprintf(path, sizeof(path), "%s/../../proto/%s", source, file);
    proto = fopen(path, "r");
    assert_non_null(proto);
    while (fgets(line, sizeof(line), proto)) {
        (void)sscanf(line, "package %127[^;]", package);
        (void)sscanf(line, "service %127s", service);
        if (sscanf(line, " rpc %127[^(]", name) == 1) {
            (void)snprintf(method, sizeof(method), "/%s.%s/%s", package, service, name);
            fn(method);
            n++;
        }
    }
    (void)fclose(proto);
    return n;
}

static void assert_row(const char *path)
{
    size_t n = 0;

    print_message("# %s\n", path);
    for (size_t i = 0; i < method_count(); i++) {
        n += strcmp(method_table[i].path, path) == 0;
    }
    assert_int_equal(n, 1);
}

static void test_method_table__is_what_the_protos_say(void **state)
{
    size_t n;

    (void)state;
    n = each_method("skrull/v1/planner.proto", assert_row);
    n += each_method("grpc/health/v1/health.proto", assert_row);
    n += each_method("grpc/reflection/v1/reflection.proto", assert_row);
    n += each_method("grpc/reflection/v1alpha/reflection.proto", assert_row);
    assert_int_equal(n, method_count());
}

static void test_method_table__names_end_the_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < method_count(); i++) {
        const char *slash = strrchr(method_table[i].path, '/');

        assert_string_equal(slash + 1, method_table[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_method_table__is_what_the_protos_say),
        cmocka_unit_test(test_method_table__names_end_the_paths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The configuration file, alone and under a command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arena.h"
#include "config/config.h"
#include "temporary.h"

static const struct config_env env = {.home = "/h", .uid = 1};

/* Parses a file of `text` under the command line `more` (nullable, one option and its value). */
static int parse(struct arena *arena, const char *text, char *option, char *value,
                 struct config *ret_config, struct skrull_error *err)
{
    struct temporary folder;
    char name[] = "--config", path[TEMPORARY_PATH_SIZE];
    char *argv[] = {name, path, option, value};
    int code;

    temporary_make(&folder);
    temporary_write(&folder, "c.yaml", text, strlen(text));
    (void)snprintf(path, sizeof(path), "%s", temporary_path(&folder, "c.yaml"));
    code = config_parse(arena, option ? 4 : 2, argv, &env, ret_config, err);
    temporary_remove(&folder);
    return code;
}

static int setup(void **state)
{
    *state = arena_new(1 << 24);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static void test_option_file_read__both_spellings_lists_and_scalars(void **state)
{
    struct config config;

    assert_int_equal(parse(*state,
                           "listen: [unix:/a, '127.0.0.1:0']\ndata_root: /x\n"
                           "drain-timeout: 7\nplan_threads: \"2\"\ninsecure: true\n"
                           "log_format: json\n",
                           NULL, NULL, &config, NULL),
                     0);
    assert_int_equal(config.listen.n, 2);
    assert_string_equal(config.listen.items[1], "127.0.0.1:0");
    assert_int_equal(config.data_root.n, 1);
    assert_int_equal(config.drain_timeout_s, 7);
    assert_int_equal(config.plan_threads, 2);
    assert_true(config.insecure);
    assert_string_equal(config.log_format, "json");
}

static void test_option_file_read__the_command_line_wins(void **state)
{
    char listen[] = "--listen", address[] = "unix:/b", level[] = "--log-level", debug[] = "debug";
    struct config config;

    assert_int_equal(
        parse(*state, "listen: unix:/a\nlog_level: warn\n", listen, address, &config, NULL), 0);
    assert_int_equal(config.listen.n, 1);
    assert_string_equal(config.listen.items[0], "unix:/b");
    assert_string_equal(config.log_level, "warn");
    assert_int_equal(parse(*state, "log_level: warn\n", level, debug, &config, NULL), 0);
    assert_string_equal(config.log_level, "debug");
}

static void test_option_file_read__empty(void **state)
{
    static const char *const texts[] = {"", "# nothing\n", "{}\n", "---\n"};
    struct config config;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(parse(*state, texts[i], NULL, NULL, &config, NULL), 0);
        assert_int_equal(config.drain_timeout_s, 30);
    }
}

static void test_option_file_read__refuses_and_names_the_line(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"insecure: true\ncolour: red\n", "line 2: unknown key colour"},
        {"\n\ndrain_timeout: soon\n", "line 3: drain-timeout: soon is not a number"},
        {"log_level: loud\n", "line 1: log-level: loud is not one of error|warn|info|debug"},
        {"http: 127.0.0.1:1\n", "line 1: http: 127.0.0.1:1 is not built yet"},
        {"state: [a, b]\n", "line 1: a scalar is expected"},
        {"listen: {a: b}\n", "line 1: a scalar is expected"},
        {"state: sqlite:/a\nstate: sqlite:/b\n", "line 2: a key stands twice"},
        {"config: x\n", "line 1: this option is for the command line only"},
        {"- a\n", "line 1: a mapping of options is expected"},
        {"a: [b\n", "line 2: "},
        {"insecure: yes\n", "line 1: insecure: yes is neither true nor false"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct skrull_error err = {0};
        struct config config;

        print_message("# %s\n", cases[i].message);
        assert_int_equal(parse(*state, cases[i].text, NULL, NULL, &config, &err),
                         SKRULL_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, cases[i].message));
        assert_non_null(strstr(err.message, "c.yaml"));
    }
}

static void test_option_file_read__no_such_file(void **state)
{
    char name[] = "--config", path[] = "/nonexistent/c.yaml";
    char *argv[] = {name, path};
    struct skrull_error err = {0};
    struct config config;

    assert_int_equal(config_parse(*state, 2, argv, &env, &config, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "/nonexistent/c.yaml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_option_file_read__both_spellings_lists_and_scalars,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_option_file_read__the_command_line_wins, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_option_file_read__empty, setup, teardown),
        cmocka_unit_test_setup_teardown(test_option_file_read__refuses_and_names_the_line, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_option_file_read__no_such_file, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

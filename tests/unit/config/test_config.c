/* The command line, the environment's defaults, and what is refused. */
#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"
#include "config/option.h"

#define MAX_ARGS 12

static const struct config_env home_env = {.home = "/home/u", .uid = 1000};

/* Splits `line` at spaces and parses it. */
static int parse(struct arena *arena, const char *line, const struct config_env *env,
                 struct config *ret_config, struct skrull_error *err)
{
    char *copy = arena_strdup(arena, line), *saved = NULL;
    char *argv[MAX_ARGS];
    int argc = 0;

    for (char *word = strtok_r(copy, " ", &saved); word; word = strtok_r(NULL, " ", &saved)) {
        assert_true(argc < MAX_ARGS);
        argv[argc++] = word;
    }
    return config_parse(arena, argc, argv, env, ret_config, err);
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

static void test_config_parse__defaults(void **state)
{
    struct config config;

    assert_int_equal(parse(*state, "", &home_env, &config, NULL), 0);
    assert_int_equal(config.listen.n, 1);
    assert_string_equal(config.listen.items[0], "unix:/tmp/skrull-1000/skrulld.sock");
    assert_string_equal(config.state, "sqlite:/home/u/.local/state/skrull/skrull.db");
    assert_true(config.is_state_default);
    assert_int_equal(parse(*state, "--state sqlite:/s.db", &home_env, &config, NULL), 0);
    assert_false(config.is_state_default);
    assert_int_equal(parse(*state, "", &home_env, &config, NULL), 0);
    assert_int_equal(config.drain_timeout_s, 30);
    assert_int_equal(config.plan_threads, 0);
    assert_int_equal(config.data_root.n, 0);
    assert_string_equal(config.log_level, "info");
    assert_string_equal(config.log_format, "text");
    assert_false(config.insecure);
}

static void test_config_parse__defaults_by_environment(void **state)
{
    static const struct {
        struct config_env env;
        const char *listen, *state;
    } cases[] = {
        {{.xdg_runtime_dir = "/run/user/7", .home = "/h", .uid = 7},
         "unix:/run/user/7/skrull/skrulld.sock",
         "sqlite:/h/.local/state/skrull/skrull.db"},
        {{.home = "/root", .uid = 0},
         "unix:/run/skrull/skrulld.sock",
         "sqlite:/root/.local/state/skrull/skrull.db"},
        {{.xdg_state_home = "/s", .home = "/h", .uid = 1},
         "unix:/tmp/skrull-1/skrulld.sock",
         "sqlite:/s/skrull/skrull.db"},
        {{.state_directory = "/var/lib/skrull:/other", .xdg_state_home = "/s", .uid = 1},
         "unix:/tmp/skrull-1/skrulld.sock",
         "sqlite:/var/lib/skrull/skrull.db"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config config;

        assert_int_equal(parse(*state, "", &cases[i].env, &config, NULL), 0);
        assert_string_equal(config.listen.items[0], cases[i].listen);
        assert_string_equal(config.state, cases[i].state);
    }
}

static void test_config_parse__values(void **state)
{
    struct config config;

    assert_int_equal(parse(*state,
                           "--listen unix:/a --listen=[::1]:0 --data-root /x --data-root /y "
                           "--drain-timeout 5 --plan-threads=3",
                           &home_env, &config, NULL),
                     0);
    assert_int_equal(config.listen.n, 2);
    assert_string_equal(config.listen.items[1], "[::1]:0");
    assert_int_equal(config.data_root.n, 2);
    assert_string_equal(config.data_root.items[0], "/x");
    assert_int_equal(config.drain_timeout_s, 5);
    assert_int_equal(config.plan_threads, 3);
    assert_int_equal(parse(*state, "--insecure --listen 0.0.0.0:1", &home_env, &config, NULL), 0);
    assert_true(config.insecure);
    assert_int_equal(parse(*state, "--help --http", &home_env, &config, NULL),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(parse(*state, "--version --listen nonsense", &home_env, &config, NULL), 0);
    assert_true(config.version);
}

static void test_config_parse__refuses(void **state)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"--colour red", "--colour: no such option; --help lists them"},
        {"--log_level info", "--log_level: no such option; --help lists them"},
        {"stray", "stray: no such option; --help lists them"},
        {"--", "--: no such option; --help lists them"},
        {"--state", "--state: a value is missing: URL"},
        {"--state=", "--state: empty"},
        {"--state mysql:x", "--state: mysql:x is not a state: sqlite:PATH is"},
        {"--state etcd://h:1/p", "--state: etcd://h:1/p is not built yet"},
        {"--http 127.0.0.1:9", "--http: 127.0.0.1:9 is not built yet"},
        {"--tls-cert c", "--tls-cert: c is not built yet"},
        {"--tls-key k", "--tls-key: k is not built yet"},
        {"--tls-client-ca c", "--tls-client-ca: c is not built yet"},
        {"--token-file t", "--token-file: t is not built yet"},
        {"--insecure=maybe", "--insecure: maybe is neither true nor false"},
        {"--drain-timeout 86401", "--drain-timeout: 86401 is out of range, 0 to 86400 are allowed"},
        {"--drain-timeout 99999999999999999999",
         "--drain-timeout: 99999999999999999999 is out of range, 0 to 86400 are allowed"},
        {"--drain-timeout 5s", "--drain-timeout: 5s is not a number"},
        {"--plan-threads -1", "--plan-threads: -1 is not a number"},
        {"--log-level err", "--log-level: err is not one of error|warn|info|debug"},
        {"--log-format text|json", "--log-format: text|json is not one of text|json"},
        {"--listen 0.0.0.0:80", "--listen: 0.0.0.0:80 is not a loopback address, and TLS is not "
                                "built yet: --insecure allows it in plain text"},
        {"--listen x", "--listen: x is not an address: HOST:PORT, [V6]:PORT or unix:PATH are"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct skrull_error err = {0};
        struct config config;

        assert_int_equal(parse(*state, cases[i].line, &home_env, &config, &err),
                         SKRULL_ERR_INVALID_ARGUMENT);
        assert_string_equal(err.message, cases[i].message);
    }
}

static void test_config_parse__no_home_no_state(void **state)
{
    const struct config_env env = {.uid = 1};
    struct skrull_error err = {0};
    struct config config;

    assert_int_equal(parse(*state, "", &env, &config, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "sqlite:PATH"));
}

static void test_config_help__names_every_option(void **state)
{
    char *help = config_help();

    (void)state;
    assert_non_null(help);
    for (const struct option *option = config_options; option->name; option++) {
        char name[64];

        (void)snprintf(name, sizeof(name), "--%s", option->name);
        assert_non_null(strstr(help, name));
    }
    free(help);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_config_parse__defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(test_config_parse__defaults_by_environment, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_config_parse__values, setup, teardown),
        cmocka_unit_test_setup_teardown(test_config_parse__refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_config_parse__no_home_no_state, setup, teardown),
        cmocka_unit_test(test_config_help__names_every_option),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

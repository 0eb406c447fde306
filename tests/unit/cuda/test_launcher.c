/* What launchers' environments say, and the first name of Slurm's host lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "launcher.h"

static const char *const variables[] = {"RANK",
                                        "WORLD_SIZE",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "SLURM_STEP_NODELIST",
                                        "SLURM_NODELIST",
                                        "SLURM_JOB_ID",
                                        "SKRULL_PORT",
                                        "TORCHELASTIC_USE_AGENT_STORE"};

/* "NAME=value" pairs and nothing else. */
static void set_environment(const char *const *pairs)
{
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        assert_int_equal(unsetenv(variables[i]), 0);
    }
    for (; *pairs; pairs++) {
        const char *equals = strchr(*pairs, '=');
        char *name = strndup(*pairs, (size_t)(equals - *pairs));

        assert_non_null(name);
        assert_int_equal(setenv(name, equals + 1, 1), 0);
        free(name);
    }
}

static void test_launcher_first_host__lists(void **state)
{
    static const struct {
        const char *list, *first;
    } cases[] = {{"node1", "node1"}, {"a,b", "a"},           {"n[07-09,11],m2", "n07"},
                 {"n[3]", "n3"},     {"n[1,5]-ib", "n1-ib"}, {"x-[10-12].net,y", "x-10.net"},
                 {"", NULL},         {"n[", NULL},           {"n[]", NULL},
                 {",a", NULL}};
    char host[16];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int rc = launcher_first_host(cases[i].list, host, sizeof(host));

        assert_int_equal(rc, cases[i].first ? 0 : -1);
        if (cases[i].first) {
            assert_string_equal(host, cases[i].first);
        }
    }
    assert_int_equal(launcher_first_host("a-name-that-is-too-long", host, sizeof(host)), -1);
}

static void test_launcher_find__torchrun_and_slurm(void **state)
{
    static const struct {
        const char *pairs[8];
        uint32_t rank, size;
        const char *host;
        uint16_t port;
    } cases[] = {
        {{"RANK=3", "WORLD_SIZE=8", "MASTER_ADDR=h", "MASTER_PORT=29500"}, 3, 8, "h", 29500},
        {{"RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=h", "MASTER_PORT=29500",
          "TORCHELASTIC_USE_AGENT_STORE=True"},
         0,
         1,
         "h",
         29501},
        {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=h", "MASTER_PORT=29500", "SKRULL_PORT=7"},
         0,
         2,
         "h",
         7},
        {{"SLURM_PROCID=5", "SLURM_NTASKS=6", "SLURM_STEP_NODELIST=n[2-3]", "SLURM_JOB_ID=20005"},
         5,
         6,
         "n2",
         20005},
        {{"SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_NODELIST=m", "SLURM_JOB_ID=1"},
         0,
         2,
         "m",
         20001},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct launcher_place place;
        struct skrull_error err = {0};

        set_environment(cases[i].pairs);
        if (launcher_find(&place, &err) < 0) {
            fail_msg("case %zu: %s", i, err.message);
        }
        assert_int_equal(place.rank, cases[i].rank);
        assert_int_equal(place.size, cases[i].size);
        assert_string_equal(place.host, cases[i].host);
        assert_int_equal(place.port, cases[i].port);
    }
}

static void test_launcher_find__names_what_is_wrong(void **state)
{
    static const struct {
        const char *pairs[8];
        const char *text;
    } cases[] = {
        {{NULL}, "RANK is not set"},
        {{"RANK=x", "WORLD_SIZE=8", "MASTER_ADDR=h", "MASTER_PORT=1"}, "RANK is wrong: \"x\""},
        {{"RANK=-1", "WORLD_SIZE=8", "MASTER_ADDR=h", "MASTER_PORT=1"}, "RANK is wrong"},
        {{"RANK=0", "MASTER_ADDR=h", "MASTER_PORT=1"}, "WORLD_SIZE is not set"},
        {{"RANK=0", "WORLD_SIZE=8", "MASTER_PORT=1"}, "MASTER_ADDR is not set"},
        {{"RANK=0", "WORLD_SIZE=8", "MASTER_ADDR=h", "MASTER_PORT=70000"}, "MASTER_PORT is wrong"},
        {{"RANK=0", "WORLD_SIZE=8", "MASTER_ADDR=h", "MASTER_PORT=0"}, "MASTER_PORT is wrong"},
        {{"RANK=0", "WORLD_SIZE=8", "MASTER_ADDR=h", "MASTER_PORT=1", "SKRULL_PORT=0"},
         "SKRULL_PORT is wrong"},
        {{"RANK=8", "WORLD_SIZE=8", "MASTER_ADDR=h", "MASTER_PORT=1"}, "rank 8 of 8"},
        {{"SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_JOB_ID=1"}, "SLURM_NODELIST is not set"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct launcher_place place;
        struct skrull_error err = {0};

        set_environment(cases[i].pairs);
        assert_int_equal(launcher_find(&place, &err), SKRULL_ERR_INVALID_ARGUMENT);
        if (!strstr(err.message, cases[i].text)) {
            fail_msg("case %zu says: %s", i, err.message);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launcher_first_host__lists),
        cmocka_unit_test(test_launcher_find__torchrun_and_slurm),
        cmocka_unit_test(test_launcher_find__names_what_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

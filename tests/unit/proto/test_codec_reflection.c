/* Answers about a schema that fits on a page; the daemon's own is asked about from outside:
 * integration, test_reflection. */
#include "codec_reflection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"
#include "descriptor_set.h"

/* base.proto (package "p", message M); user.proto imports it (no package, enum E {A}); lone.proto.
 */
static const uint8_t set[] = {
    0x0a, 0x14, 0x0a, 0x0a, 0x62, 0x61, 0x73, 0x65, 0x2e, 0x70, 0x72, 0x6f, 0x74, 0x6f, 0x12,
    0x01, 0x70, 0x22, 0x03, 0x0a, 0x01, 0x4d, 0x0a, 0x22, 0x0a, 0x0a, 0x75, 0x73, 0x65, 0x72,
    0x2e, 0x70, 0x72, 0x6f, 0x74, 0x6f, 0x1a, 0x0a, 0x62, 0x61, 0x73, 0x65, 0x2e, 0x70, 0x72,
    0x6f, 0x74, 0x6f, 0x2a, 0x08, 0x0a, 0x01, 0x45, 0x12, 0x03, 0x0a, 0x01, 0x41, 0x0a, 0x0c,
    0x0a, 0x0a, 0x6c, 0x6f, 0x6e, 0x65, 0x2e, 0x70, 0x72, 0x6f, 0x74, 0x6f,
};

static int setup(void **state)
{
    *state = arena_new((size_t)1 << 20);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static struct rpc_bytes ask(struct arena *arena, const struct reflection *reflection, uint8_t field,
                            const char *text)
{
    uint8_t request[64] = {(uint8_t)(field << 3 | 2), (uint8_t)strlen(text)};
    struct rpc_bytes response;

    memcpy(request + 2, text, strlen(text));
    assert_int_equal(reflection_answer(reflection, arena,
                                       (struct rpc_bytes){request, 2 + strlen(text)}, &response,
                                       NULL),
                     0);
    return response;
}

static bool holds(struct rpc_bytes bytes, const char *text)
{
    return memmem(bytes.data, bytes.len, text, strlen(text)) != NULL;
}

static void test_reflection_answer__every_budget(void **state)
{
    static const char *const symbols[] = {"skrull.v1.PlannerService", "", "x"};
    struct reflection *reflection;

    (void)state;
    assert_int_equal(reflection_new(descriptor_set, descriptor_set_len, &reflection, NULL), 0);
    for (uint8_t field = 3; field <= 7; field++) {
        for (size_t i = 0; field != 5 && i < 3; i++) {
            uint8_t request[64] = {(uint8_t)(field << 3 | 2), (uint8_t)strlen(symbols[i])};
            const struct rpc_bytes bytes = {request, 2 + strlen(symbols[i])};
            int code = SKRULL_ERR_RESOURCE_EXHAUSTED;

            memcpy(request + 2, symbols[i], strlen(symbols[i]));
            for (size_t budget = 0; code == SKRULL_ERR_RESOURCE_EXHAUSTED; budget += 16) {
                struct arena *arena = arena_new(budget);
                struct rpc_bytes response;

                code = reflection_answer(reflection, arena, bytes, &response, NULL);
                arena_free(arena);
            }
            assert_int_equal(code, 0);
        }
    }
    reflection_free(reflection);
}

static void test_reflection_answer__a_file_comes_with_what_it_imports(void **state)
{
    struct reflection *reflection;
    struct rpc_bytes response;

    assert_int_equal(reflection_new(set, sizeof(set), &reflection, NULL), 0);
    response = ask(*state, reflection, 3, "user.proto");
    assert_true(holds(response, "base.proto\x12\x01p"));
    assert_true(holds(response, "user.proto"));
    assert_false(holds(response, "lone.proto"));
    response = ask(*state, reflection, 4, "p.M");
    assert_true(holds(response, "base.proto\x12\x01p"));
    assert_false(holds(response, "user.proto"));
    assert_true(holds(ask(*state, reflection, 4, "E"), "user.proto"));
    assert_true(holds(ask(*state, reflection, 4, "A"), "user.proto"));
    assert_true(holds(ask(*state, reflection, 4, "M"), "not found"));
    assert_true(holds(ask(*state, reflection, 4, "p"), "not found"));
    assert_true(holds(ask(*state, reflection, 3, "no.proto"), "not found"));
    reflection_free(reflection);
}

static void test_reflection_new__not_a_schema(void **state)
{
    struct reflection *reflection;
    struct skrull_error err = {0};

    (void)state;
    assert_int_equal(reflection_new((const uint8_t *)"\x0a\x05", 2, &reflection, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
}

#define ARENA_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(test_reflection_answer__every_budget),
        ARENA_TEST(test_reflection_answer__a_file_comes_with_what_it_imports),
        ARENA_TEST(test_reflection_new__not_a_schema),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Alignment, limits, growth: what every caller takes for granted. */
#include "arena.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_alloc__zeroed_and_aligned(void **state)
{
    struct arena *arena = arena_new(SIZE_MAX);

    (void)state;
    for (size_t size = 1; size < 10000; size += 97) {
        unsigned char *memory = arena_alloc(arena, size, 1);

        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++) {
            assert_int_equal(memory[i], 0);
        }
        memset(memory, 0xff, size); /* sanitizers see what overlaps or is too short */
    }
    arena_free(arena);
}

static void test_alloc__pieces_do_not_overlap(void **state)
{
    enum { N = 500 };
    struct arena *arena = arena_new(SIZE_MAX);
    uint32_t *pieces[N];

    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        pieces[i] = ARENA_ARRAY(arena, uint32_t, i + 1);
        for (uint32_t j = 0; j <= i; j++) {
            pieces[i][j] = i;
        }
    }
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t j = 0; j <= i; j++) {
            assert_int_equal(pieces[i][j], i);
        }
    }
    arena_free(arena);
}

static void test_alloc__nothing(void **state)
{
    struct arena *arena = arena_new(0);

    (void)state;
    assert_non_null(arena_alloc(arena, 0, 8));
    assert_non_null(arena_alloc(arena, SIZE_MAX, 0));
    assert_int_equal(arena_used(arena), 0);
    assert_null(arena_alloc(arena, 1, 1));
    arena_free(arena);
}

static void test_alloc__limit(void **state)
{
    struct arena *arena = arena_new(64);

    (void)state;
    assert_non_null(arena_alloc(arena, 1, 48));
    assert_null(arena_alloc(arena, 1, 17));
    assert_int_equal(arena_used(arena), 48); /* a refusal takes nothing */
    assert_non_null(arena_alloc(arena, 1, 16));
    assert_null(arena_alloc(arena, 1, 1));
    arena_free(arena);
}

static void test_alloc__overflow(void **state)
{
    struct arena *arena = arena_new(SIZE_MAX);

    (void)state;
    assert_null(arena_alloc(arena, SIZE_MAX / 2, 3));
    assert_null(arena_alloc(arena, SIZE_MAX, 1));
    assert_null(arena_alloc(arena, SIZE_MAX - 31, 1));
    assert_null(arena_strndup(arena, "", SIZE_MAX));
    assert_int_equal(arena_used(arena), 0);
    assert_non_null(arena_alloc(arena, 1, 1)); /* still of use */
    arena_free(arena);
}

static void test_alloc__large_after_small(void **state)
{
    struct arena *arena = arena_new(SIZE_MAX);
    char *small = arena_strdup(arena, "small");
    char *large = arena_alloc(arena, 3, 1 << 20);

    (void)state;
    assert_non_null(large);
    memset(large, 1, 3 << 20);
    assert_string_equal(small, "small");
    arena_free(arena);
}

static void test_strndup__cuts(void **state)
{
    struct arena *arena = arena_new(SIZE_MAX);
    static const char text[] = {'a', 'b', 'c'};

    (void)state;
    assert_string_equal(arena_strndup(arena, text, sizeof(text)), "abc");
    assert_string_equal(arena_strndup(arena, text, 2), "ab");
    assert_string_equal(arena_strndup(arena, text, 0), "");
    assert_string_equal(arena_strdup(arena, "whole"), "whole");
    arena_free(arena);
}

static void test_free__null(void **state)
{
    (void)state;
    arena_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc__zeroed_and_aligned),
        cmocka_unit_test(test_alloc__pieces_do_not_overlap),
        cmocka_unit_test(test_alloc__nothing),
        cmocka_unit_test(test_alloc__limit),
        cmocka_unit_test(test_alloc__overflow),
        cmocka_unit_test(test_alloc__large_after_small),
        cmocka_unit_test(test_strndup__cuts),
        cmocka_unit_test(test_free__null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Converting: text to .skx and back again keeps rows and hash; a failed write leaves nothing. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/index/opened.h"

static void test_write_skx__keeps_rows_and_hash_of_text(void **state)
{
    struct temporary *folder = *state;
    struct length_index *text = NULL, *skx = NULL;
    uint64_t text_hash = 0, skx_hash = 1;
    struct stat info;

    assert_int_equal(open_bytes(folder, "a.txt", "7\n4294967295\n1\n", 15, &text, NULL), 0);
    assert_int_equal(index_write_skx(text, temporary_path(folder, "a.skx"), NULL), 0);
    assert_int_equal(open_path(temporary_path(folder, "a.skx"), NULL, &skx, NULL), 0);
    assert_string_equal(skx->format, "skx");
    assert_int_equal(skx->count, 3);
    assert_int_equal(skx->tokens, UINT64_C(4294967303));
    assert_memory_equal(skx->lengths, text->lengths, 12);
    assert_int_equal(index_verify(text, &text_hash, NULL), 0);
    assert_int_equal(index_verify(skx, &skx_hash, NULL), 0);
    assert_true(text_hash == skx_hash);
    assert_int_equal(stat(temporary_path(folder, "a.skx"), &info), 0);
    assert_int_equal(info.st_size, 64 + 12);
    assert_int_equal(info.st_mode & 07777, 0644);
    index_close(text);
    index_close(skx);
}

/* An index may be converted onto itself: the mapping keeps the old file. */
static void test_write_skx__onto_itself(void **state)
{
    struct temporary *folder = *state;
    struct length_index *idx = NULL;
    uint64_t hash;

    assert_int_equal(open_bytes(folder, "a.txt", "7\n8\n", 4, &idx, NULL), 0);
    assert_int_equal(index_write_skx(idx, temporary_path(folder, "a.skx"), NULL), 0);
    index_close(idx);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(open_path(temporary_path(folder, "a.skx"), NULL, &idx, NULL), 0);
        assert_int_equal(index_write_skx(idx, temporary_path(folder, "a.skx"), NULL), 0);
        assert_int_equal(index_verify(idx, &hash, NULL), 0);
        assert_int_equal(idx->lengths[1], 8);
        index_close(idx);
    }
}

static void test_write_skx__failure_names_the_path_and_leaves_nothing(void **state)
{
    struct temporary *folder = *state;
    struct length_index *idx = NULL;
    struct skrull_error err = {0};
    size_t count = 0;
    DIR *dir;

    assert_int_equal(open_bytes(folder, "a.txt", "7\n8\n", 4, &idx, NULL), 0);
    assert_int_equal(index_write_skx(idx, temporary_path(folder, "no/a.skx"), &err),
                     SKRULL_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "no/a.skx: opening its folder"));
    assert_int_equal(mkdir(temporary_path(folder, "b.skx"), 0755), 0);
    assert_true(index_write_skx(idx, temporary_path(folder, "b.skx"), &err) < 0);
    index_close(idx);
    dir = opendir(folder->path);
    while (readdir(dir)) {
        count++;
    }
    (void)closedir(dir);
    assert_int_equal(count, 2 + 2); /* . and .., a.txt and b.skx */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_write_skx__keeps_rows_and_hash_of_text,
                                        temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_write_skx__onto_itself, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test_setup_teardown(test_write_skx__failure_names_the_path_and_leaves_nothing,
                                        temporary_setup, temporary_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

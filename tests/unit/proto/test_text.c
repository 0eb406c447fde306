/* text.c: UTF-8 and how messages quote it. */
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_text_character_len__table_3_7(void **state)
{
    static const struct {
        const char *text;
        size_t len;
    } rows[] = {
        {"", 0},
        {"a", 1},
        {"\x7f", 1},
        {"\x80", 0},
        {"\xbf", 0},
        {"\xc0\x80", 0},
        {"\xc1\xbf", 0},
        {"\xc2\x80", 2},
        {"\xc2", 0},
        {"\xc2\x7f", 0},
        {"\xc2\xc0", 0},
        {"\xdf\xbf", 2},
        {"\xe0\x9f\xbf", 0},
        {"\xe0\xa0\x80", 3},
        {"\xe2\x82", 0},
        {"\xe2\x82\x41", 0},
        {"\xed\x9f\xbf", 3},
        {"\xed\xa0\x80", 0},
        {"\xee\x80\x80", 3},
        {"\xef\xbf\xbf", 3},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf0\x90\x80\x80", 4},
        {"\xf0\x90\x80", 0},
        {"\xf4\x8f\xbf\xbf", 4},
        {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
        {"\xff", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_message("# row %zu\n", i);
        assert_int_equal(text_character_len(rows[i].text), rows[i].len);
    }
}

static void test_text_is_plain__controls(void **state)
{
    (void)state;
    assert_true(text_is_plain(""));
    assert_true(text_is_plain("d\u00e9j\u00e0 vu~ \u00a0\U0001F600"));
    assert_false(text_is_plain("a\tb"));
    assert_false(text_is_plain("a\n"));
    assert_false(text_is_plain("\x1b[0m"));
    assert_false(text_is_plain("\x7f"));
    assert_false(text_is_plain("a\xc2\x80"));
    assert_false(text_is_plain("a\xc2\x9f"));
    assert_false(text_is_plain("a\xff"));
    assert_false(text_is_plain("a\xe2\x82"));
}

static void test_text_clip__what_a_message_shows(void **state)
{
    char clip[TEXT_CLIP_SIZE], text[200];

    (void)state;
    assert_string_equal(text_clip("", clip), "");
    assert_string_equal(text_clip("batch.align", clip), "batch.align");
    assert_string_equal(text_clip("a\nb\xff\xc2\x85\u00e9", clip), "a?b??\u00e9");
    memset(text, 'x', sizeof(text));
    text[TEXT_CLIP_SIZE - 4] = '\0';
    assert_string_equal(text_clip(text, clip), text);
    text[TEXT_CLIP_SIZE - 4] = 'x';
    text[199] = '\0';
    assert_int_equal(strlen(text_clip(text, clip)), TEXT_CLIP_SIZE - 1);
    assert_string_equal(clip + TEXT_CLIP_SIZE - 4, "...");
}

static void test_text_clip__never_cuts_a_character(void **state)
{
    char clip[TEXT_CLIP_SIZE], text[200];

    (void)state;
    for (size_t lead = 0; lead < 4; lead++) {
        memset(text, 'x', lead);
        for (size_t i = 0; i < 40; i++) {
            memcpy(text + lead + i * 4, "\U0001F600", 5);
        }
        assert_true(text_is_plain(text_clip(text, clip)));
        assert_true(strlen(clip) >= TEXT_CLIP_SIZE - 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_character_len__table_3_7),
        cmocka_unit_test(test_text_is_plain__controls),
        cmocka_unit_test(test_text_clip__what_a_message_shows),
        cmocka_unit_test(test_text_clip__never_cuts_a_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

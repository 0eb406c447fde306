/* Compressed text: members and frames, padding, cuts, damage, bombs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <zlib.h>
#include <zstd.h>

#include "unit/index/opened.h"
#include "unit/index/text_builder.h"

#define PIECE ((size_t)1 << 18) /* byte_stream.c's */

struct bytes {
    unsigned char *at;
    size_t size;
};

static struct bytes with_room(size_t room)
{
    struct bytes bytes = {malloc(room), 0};

    assert_non_null(bytes.at);
    return bytes;
}

static void append_gzip(struct bytes *out, const void *text, size_t size)
{
    z_stream z = {0};

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)size;
    z.next_out = out->at + out->size;
    z.avail_out = (uInt)(size + size / 100 + 1000);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->size += z.total_out;
    (void)deflateEnd(&z);
}

static void append_zstd(struct bytes *out, const void *text, size_t size)
{
    size_t n = ZSTD_compress(out->at + out->size, size + size / 100 + 1000, text, size, 1);

    assert_false(ZSTD_isError(n));
    out->size += n;
}

static void append_raw(struct bytes *out, const void *bytes, size_t size)
{
    memcpy(out->at + out->size, bytes, size);
    out->size += size;
}

typedef void append_fn(struct bytes *out, const void *text, size_t size);

static append_fn *const appends[] = {append_gzip, append_zstd};
static const char *const names[] = {"gzip", "zstd"};

static int open_as_file(struct temporary *folder, const struct bytes *bytes,
                        const struct index_options *options, struct length_index **ret_idx,
                        struct skrull_error *err)
{
    temporary_write(folder, "a", bytes->at, bytes->size);
    return open_path(temporary_path(folder, "a"), options, ret_idx, err);
}

/* Sevens as text, `size` bytes; a multiple of 2. */
static char *sevens(size_t size)
{
    char *text = malloc(size);

    assert_non_null(text);
    for (size_t i = 0; i < size; i++) {
        text[i] = i % 2 ? '\n' : '7';
    }
    return text;
}

static void assert_sevens(struct temporary *folder, const struct bytes *bytes, uint64_t count)
{
    struct length_index *idx = NULL;
    struct skrull_error err = {0};
    int status = open_as_file(folder, bytes, NULL, &idx, &err);

    print_message("# %s\n", err.message);
    assert_int_equal(status, 0);
    assert_string_equal(idx->format, "text");
    assert_int_equal(idx->count, count);
    assert_int_equal(idx->tokens, 7 * count);
    index_close(idx);
}

static void assert_refused(struct temporary *folder, const struct bytes *bytes, int code,
                           const char *message)
{
    struct length_index *idx = NULL;
    struct skrull_error err = {0};
    int status = open_as_file(folder, bytes, NULL, &idx, &err);

    print_message("# %s\n", err.message);
    assert_int_equal(status, code);
    assert_non_null(strstr(err.message, message));
}

/* Sizes around those of the buffers, and many members. */
static void test_byte_stream__sizes(void **state)
{
    static const size_t sizes[] = {2, PIECE - 2, PIECE, PIECE + 2, 2 * PIECE, 3 * PIECE + 2};
    char *text = sevens(3 * PIECE + 2);

    for (size_t kind = 0; kind < 2; kind++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            struct bytes bytes = with_room(2 * (sizes[i] + 2000));

            appends[kind](&bytes, text, sizes[i]);
            assert_sevens(*state, &bytes, sizes[i] / 2);
            appends[kind](&bytes, text, sizes[i]);
            assert_sevens(*state, &bytes, sizes[i]);
            free(bytes.at);
        }
    }
    free(text);
}

/* Bytes that do not compress: the input is longer than a buffer, and ends anywhere in it. */
static void test_byte_stream__long_input(void **state)
{
    const size_t n = 300000;
    struct text_builder text = text_builder_of(n * 12);
    uint64_t tokens = 0;
    uint32_t x = 1;

    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        x = x ? x : 1;
        add_text(&text, "%u\n", x);
        tokens += x;
    }
    for (size_t kind = 0; kind < 2; kind++) {
        struct bytes bytes = with_room(2 * text.len);
        struct length_index *idx = NULL;

        appends[kind](&bytes, text.at, text.len);
        assert_true(bytes.size > 2 * PIECE);
        assert_int_equal(open_as_file(*state, &bytes, NULL, &idx, NULL), 0);
        assert_int_equal(idx->count, n);
        assert_int_equal(idx->tokens, tokens);
        index_close(idx);
        free(bytes.at);
    }
    free(text.at);
}

static void test_byte_stream__many_members(void **state)
{
    for (size_t kind = 0; kind < 2; kind++) {
        struct bytes bytes = with_room(2000000);

        for (size_t i = 0; i < 1000; i++) {
            appends[kind](&bytes, "7\n", 2);
            appends[kind](&bytes, "", 0);
        }
        assert_sevens(*state, &bytes, 1000);
        free(bytes.at);
    }
}

/* A byte order mark in a member of its own. */
static void test_byte_stream__mark_across_members(void **state)
{
    struct bytes bytes = with_room(10000);

    append_gzip(&bytes, "\xef", 1);
    append_gzip(&bytes, "\xbb\xbf", 2);
    append_gzip(&bytes, "7\n7\n", 4);
    assert_sevens(*state, &bytes, 2);
    bytes.size = 0;
    append_gzip(&bytes, "\xef\xbb\xbf", 3);
    assert_refused(*state, &bytes, SKRULL_ERR_INVALID_ARGUMENT, "holds no number");
    free(bytes.at);
}

static void test_byte_stream__padding(void **state)
{
    struct bytes bytes = with_room(10000);

    append_gzip(&bytes, "7\n", 2);
    append_raw(&bytes, "\0\0\0\0\0\0", 6);
    assert_sevens(*state, &bytes, 1);
    append_gzip(&bytes, "7\n", 2);
    assert_refused(*state, &bytes, SKRULL_ERR_DATA_LOSS, "bytes after the end of the gzip data");
    bytes.size = 0;
    append_gzip(&bytes, "7\n", 2);
    append_raw(&bytes, "7\n", 2);
    assert_refused(*state, &bytes, SKRULL_ERR_DATA_LOSS, "bytes after the end of the gzip data");
    free(bytes.at);
}

static void test_byte_stream__skippable_frames(void **state)
{
    struct bytes bytes = with_room(10000);

    append_raw(&bytes, "\x50\x2a\x4d\x18\x03\0\0\0abc", 11);
    append_zstd(&bytes, "7\n7\n", 4);
    append_raw(&bytes, "\x5f\x2a\x4d\x18\0\0\0\0", 8);
    append_zstd(&bytes, "7\n", 2);
    append_raw(&bytes, "\x5a\x2a\x4d\x18\1\0\0\0z", 9);
    assert_sevens(*state, &bytes, 3);
    bytes.size--;
    assert_refused(*state, &bytes, SKRULL_ERR_DATA_LOSS, "truncated: the zstd data ends before");
    append_raw(&bytes, "zgarbage", 8);
    assert_refused(*state, &bytes, SKRULL_ERR_DATA_LOSS, "damaged zstd data");
    free(bytes.at);
}

/* Every cut is noticed, but between two members. */
static void test_byte_stream__cut_anywhere(void **state)
{
    static const char text[] = "17\n512\n4096\n32768\n131072\n1682432\n2\n8191\n";

    for (size_t kind = 0; kind < 2; kind++) {
        struct bytes bytes = with_room(10000);
        size_t first, whole;

        appends[kind](&bytes, text, sizeof(text) - 1);
        first = bytes.size;
        appends[kind](&bytes, text, sizeof(text) - 1);
        whole = bytes.size;
        for (bytes.size = 4; bytes.size <= whole; bytes.size++) {
            struct length_index *idx = NULL;
            struct skrull_error err = {0};
            int status = open_as_file(*state, &bytes, NULL, &idx, &err);
            int is_good = bytes.size == first || bytes.size == whole;

            assert_int_equal(status, is_good ? 0 : SKRULL_ERR_DATA_LOSS);
            assert_true(is_good || strstr(err.message, "truncated"));
            assert_true(is_good || strstr(err.message, names[kind]));
            index_close(idx);
        }
        free(bytes.at);
    }
}

/* A changed byte is an error or leaves the lengths as they are; gzip's checksum sees to that. */
static void test_byte_stream__damage(void **state)
{
    static const char text[] = "17\n512\n4096\n32768\n131072\n1682432\n2\n8191\n";
    struct bytes bytes = with_room(10000);

    append_gzip(&bytes, text, sizeof(text) - 1);
    for (size_t i = 2; i < bytes.size; i++) {
        struct length_index *idx = NULL;
        struct skrull_error err = {0};

        bytes.at[i] ^= 0x10;
        if (open_as_file(*state, &bytes, NULL, &idx, &err) == 0) {
            assert_int_equal(idx->count, 8);
            assert_int_equal(idx->tokens, 17 + 512 + 4096 + 32768 + 131072 + 1682432 + 2 + 8191);
        }
        index_close(idx);
        bytes.at[i] ^= 0x10;
    }
    free(bytes.at);
}

static void test_byte_stream__bomb(void **state)
{
    const struct index_options options = {.max_decoded = 2 * PIECE};
    char *text = malloc(2 * PIECE + 1);

    assert_non_null(text);
    memset(text, '\n', 2 * PIECE + 1);
    text[0] = '7';
    for (size_t kind = 0; kind < 2; kind++) {
        for (size_t more = 0; more < 2; more++) {
            struct bytes bytes = with_room(3 * PIECE);
            struct length_index *idx = NULL;
            struct skrull_error err = {0};

            appends[kind](&bytes, text, 2 * PIECE + more);
            assert_true(bytes.size < 2000);
            assert_int_equal(open_as_file(*state, &bytes, &options, &idx, &err),
                             more ? SKRULL_ERR_RESOURCE_EXHAUSTED : 0);
            assert_true(!more || strstr(err.message, "inflates to more than 524288 bytes"));
            assert_true(!more || strstr(err.message, kind ? "unzstd it first" : "gunzip it first"));
            index_close(idx);
            free(bytes.at);
        }
    }
    free(text);
}

static void test_byte_stream__zstd_window_too_large(void **state)
{
    struct bytes bytes = with_room(100000);
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    ZSTD_inBuffer in = {"7\n", 2, 0};
    ZSTD_outBuffer out = {bytes.at, 100000, 0};

    assert_non_null(zstd);
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, 28)));
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_contentSizeFlag, 0)));
    assert_false(ZSTD_isError(ZSTD_compressStream2(zstd, &out, &in, ZSTD_e_flush)));
    assert_int_equal(ZSTD_compressStream2(zstd, &out, &in, ZSTD_e_end), 0);
    bytes.size = out.pos;
    (void)ZSTD_freeCCtx(zstd);
    assert_refused(*state, &bytes, SKRULL_ERR_INVALID_ARGUMENT, "a window over 128 MiB; unzstd");
    free(bytes.at);
}

/* What is inside is looked at again: only text is read compressed. */
static void test_byte_stream__detects_what_is_inside(void **state)
{
    static const struct {
        const char *inside, *format, *message;
        size_t size;
    } cases[] = {
        {"PAR1....", NULL, "parquet is not built yet", 8},
        {"SKRULLX\0", NULL, "skx inside of gzip; only text formats are read compressed: gunzip", 8},
        {"7\n", "skx", "skx inside of gzip; only text formats", 2},
        {"\x1f\x8b\x08", NULL, "gzip within gzip or zstd", 3},
        {"\xff\xfe"
         "7\0",
         NULL, "UTF-16", 4},
        {"x\n", NULL, "line 1: x is no whole number", 2},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct index_options options = {.format = cases[i].format};
        struct bytes bytes = with_room(10000);
        struct length_index *idx = NULL;
        struct skrull_error err = {0};

        append_gzip(&bytes, cases[i].inside, cases[i].size);
        assert_int_equal(open_as_file(*state, &bytes, &options, &idx, &err),
                         SKRULL_ERR_INVALID_ARGUMENT);
        print_message("# %s\n", err.message);
        assert_non_null(strstr(err.message, cases[i].message));
        free(bytes.at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, temporary_setup, temporary_teardown)
        TEST(test_byte_stream__sizes),
        TEST(test_byte_stream__long_input),
        TEST(test_byte_stream__many_members),
        TEST(test_byte_stream__mark_across_members),
        TEST(test_byte_stream__padding),
        TEST(test_byte_stream__skippable_frames),
        TEST(test_byte_stream__cut_anywhere),
        TEST(test_byte_stream__damage),
        TEST(test_byte_stream__bomb),
        TEST(test_byte_stream__zstd_window_too_large),
        TEST(test_byte_stream__detects_what_is_inside),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* .npy indexes: the cases of tests/data/formats/npy, and what no file there shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/index/cases.h"

#define GOOD(name)                                                                                 \
    {                                                                                              \
        name, "lengths.npy", "npy", {0}, NULL                                                      \
    }

static void test_npy__good_cases(void **state)
{
    static const struct good_case cases[] = {
        GOOD("big_endian_i4"),       GOOD("column_fortran"),   GOOD("column_n_by_1"),
        GOOD("float64_integral"),    GOOD("header_key_order"), GOOD("int32"),
        GOOD("int64_beyond_int32"),  GOOD("uint16"),           GOOD("uint32"),
        GOOD("old_16_byte_padding"), GOOD("uint64"),           GOOD("uint8"),
        GOOD("version2_header"),
    };
    static const struct good_case others[] = {
        {"jsonl_meta", "0a1b2c3d/77ff/jsonl_meta/num_tokens.npy", "npy", {0}, NULL},
    };

    (void)state;
    check_good("npy", cases, N_CASES(cases));
    check_good("xtuner_cache", others, N_CASES(others));
}

#define BAD(name, code, message)                                                                   \
    {                                                                                              \
        name, "lengths.npy", SKRULL_ERR_##code, message,                                           \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

static void test_npy__bad_cases(void **state)
{
    static const struct bad_case cases[] = {
        BAD("bad_bool", INVALID_ARGUMENT, "descr |b1; integers of 1 to 8 bytes"),
        BAD("bad_float_fraction", INVALID_ARGUMENT, "row 1 is no whole number"),
        BAD("bad_float_nan", INVALID_ARGUMENT, "row 1 is NaN"),
        BAD("bad_header_code", INVALID_ARGUMENT, "no literal of numpy's"),
        BAD("bad_object_pickle", INVALID_ARGUMENT, "a pickle, which can run code"),
        BAD("bad_shape_overflow", DATA_LOSS, "truncated"),
        BAD("bad_structured", INVALID_ARGUMENT, "descr has several fields"),
        BAD("bad_three_dims", INVALID_ARGUMENT, "three or more dimensions"),
        BAD("bad_trailing_bytes", DATA_LOSS, "bytes after its end: 52 bytes of data"),
        BAD("bad_truncated_data", DATA_LOSS, "truncated: 41 bytes of data, but 12 items of 4"),
        BAD("bad_truncated_header", DATA_LOSS, "a header of 118 bytes, 30 are there"),
        BAD("bad_two_columns", INVALID_ARGUMENT, "shape (2, 2): which column"),
        BAD("bad_uint64_overflow", INVALID_ARGUMENT, "row 1 has length 9223372036854775813;"),
        BAD("bad_unicode", INVALID_ARGUMENT, "descr <U2"),
    };
    static const struct bad_case nemo[] = {
        {"bad_object_npy", "packed_2048_seed0.npy", 0, "a pickle, which can run code", {0}},
    };
    static const struct bad_case xtuner[] = {
        {"bad_damaged_zero",
         "0a1b2c3d/77ff/jsonl_meta/num_tokens.npy",
         0,
         "row 1 has length 0",
         {0}},
    };
    static const struct bad_case internevo[] = {
        {"int64_pairs", "train.bin.meta", 0, "shape (12, 2): which column", {0}},
        {"bad_offset_wrapped", "train.bin.meta", 0, "shape (3, 2): which column", {0}},
    };
    static const struct bad_case foreign[] = {
        {"bad_elf", "lengths.npy", 0, "a program (ELF)", {0}},
        {"bad_elf",
         "lengths.npy",
         0,
         "no .npy: it does not begin with \\x93NUMPY",
         {.format = "npy"}},
        {"bad_git_lfs_pointer",
         "lengths.npy",
         0,
         "a Git LFS pointer and no length index; git lfs pull",
         {0}},
    };

    (void)state;
    check_bad("npy", cases, N_CASES(cases));
    check_bad("nemo_packed", nemo, N_CASES(nemo));
    check_bad("xtuner_cache", xtuner, N_CASES(xtuner));
    check_bad("internevo_meta", internevo, N_CASES(internevo));
    check_bad("foreign", foreign, N_CASES(foreign));
}

struct header_case {
    const char *header;
    size_t size;         /* 0: of the text */
    const char *message; /* NULL: good, three lengths */
};

/* A version 1.0 file of the header and of 12 bytes: 5, 7, 9 as <i4. */
static size_t write_npy(unsigned char *out, const char *header, size_t header_size)
{
    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (unsigned char)(header_size & 0xff);
    out[9] = (unsigned char)(header_size >> 8);
    memcpy(out + 10, header, header_size);
    memcpy(out + 10 + header_size, "\5\0\0\0\7\0\0\0\t\0\0\0", 12);
    return 10 + header_size + 12;
}

static void test_npy__headers(void **state)
{
    static const struct header_case cases[] = {
        {"{'descr':'<i4','fortran_order':False,'shape':(3,)}", 0, NULL},
        {"{ 'descr' : '<i4' , 'fortran_order' : True , 'shape' : ( 3 , 1 ) , } \n", 0, NULL},
        {"{'shape': (3L,), 'descr': '=i4', \"fortran_order\": False, }", 0, NULL},
        {"{'shape': (3), 'descr': '=u4', 'fortran_order': False}", 0, NULL},
        {"{'descr':'<i4','fortran_order':False,'shape':(2,)}", 0, "bytes after its end"},
        {"{'descr':'<i4','fortran_order':False,'shape':(4,)}", 0,
         "truncated: 12 bytes of data, but 4"},
        {"{'descr':'<i8','fortran_order':False,'shape':(3,)}", 0, "but 3 items of 8 take 24"},
        {"{'descr':'<i4','fortran_order':False,'shape':(0,)}", 0, "bytes after its end"},
        {"{'descr':'<i4','fortran_order':False,'shape':(18446744073709551615,)}", 0, "truncated"},
        {"{'descr':'<i4','fortran_order':False,'shape':(18446744073709551616,)}", 0,
         "a shape over 2^64"},
        {"{'descr':'<i4','fortran_order':False,'shape':()}", 0, "a single number"},
        {"{'descr':'<i4','fortran_order':False,'shape':(3,1,1)}", 0, "three or more dimensions"},
        {"{'descr':'<i4','fortran_order':False,'shape':(1,3)}", 0, "shape (1, 3): which column"},
        {"{'descr':'<i4','fortran_order':False,'shape':(-3,)}", 0, "no literal"},
        {"{'descr':'<i4','fortran_order':False,'shape':(3,}", 0, "no literal"},
        {"{'descr':'<i4','fortran_order':False,'shape':3}", 0, "no literal"},
        {"{'descr':'<i4','fortran_order':0,'shape':(3,)}", 0, "no literal"},
        {"{'descr':'<i4','fortran_order':False}", 0, "lacks descr, fortran_order or shape"},
        {"{}", 0, "lacks descr, fortran_order or shape"},
        {"{'descr':'<i4','descr':'<i4','fortran_order':False,'shape':(3,)}", 0, "a key twice"},
        {"{'descr':'<i4','fortran_order':False,'shape':(3,),'x':1}", 0, "a key besides"},
        {"{'descr':'<i4','fortran_order':False,'shape':(3,)} x", 0, "no literal"},
        {"{'descr':'<i4','fortran_order':False,'shape':(3,)", 0, "no literal"},
        {"{'descr':'<i4' 'fortran_order':False,'shape':(3,)}", 0, "no literal"},
        {"{'descr':'<i4", 0, "no literal"},
        {"{'descr':'\\x3ci4','fortran_order':False,'shape':(3,)}", 0, "no literal"},
        {"{'descr':'<f2','fortran_order':False,'shape':(6,)}", 0, "descr <f2"},
        {"{'descr':'<i3','fortran_order':False,'shape':(4,)}", 0, "descr <i3"},
        {"{'descr':'<f1','fortran_order':False,'shape':(12,)}", 0, "descr <f1"},
        {"{'descr':'<c8','fortran_order':False,'shape':(1,)}", 0, "descr <c8"},
        {"{'descr':'<i16','fortran_order':False,'shape':(1,)}", 0, "descr <i16"},
        {"{'descr':'','fortran_order':False,'shape':(1,)}", 0, "descr ;"},
        {"{'descr':'<i\0','fortran_order':False,'shape':(3,)}", 50, "descr <i"},
        {"{'descr':'\0i4','fortran_order':False,'shape':(3,)}", 50, "descr "},
        {"", 0, "no literal"},
        {"__import__('os').system('true')", 0, "no literal"},
    };

    for (size_t i = 0; i < N_CASES(cases); i++) {
        unsigned char bytes[256];
        struct length_index *idx = NULL;
        struct skrull_error err = {0};
        size_t size = write_npy(bytes, cases[i].header,
                                cases[i].size ? cases[i].size : strlen(cases[i].header));
        int status = open_bytes(*state, "a.npy", bytes, size, &idx, &err);

        print_message("# case %zu: %s\n", i, err.message);
        if (cases[i].message) {
            assert_true(status == SKRULL_ERR_INVALID_ARGUMENT || status == SKRULL_ERR_DATA_LOSS);
            assert_non_null(strstr(err.message, cases[i].message));
            continue;
        }
        assert_int_equal(status, 0);
        assert_int_equal(idx->count, 3);
        assert_int_equal(idx->tokens, 21);
        assert_int_equal(idx->lengths[2], 9);
        index_close(idx);
    }
}

/* One item of each type: its bits, and what becomes of it. */
static void test_npy__items(void **state)
{
    static const struct {
        const char *descr;
        size_t size;
        uint64_t bits;
        uint32_t length; /* 0: refused */
        const char *message;
    } cases[] = {
        {"|i1", 1, 0x7f, 127, NULL},
        {"|i1", 1, 0x80, 0, "row 0 is negative"},
        {"|u1", 1, 0x80, 128, NULL},
        {"<i2", 2, 0xfffd, 0, "row 0 is negative"},
        {"<u2", 2, 0xfffd, 65533, NULL},
        {"<i4", 4, 0x7fffffff, 2147483647, NULL},
        {"<i4", 4, 0x80000000, 0, "row 0 is negative"},
        {"<u4", 4, 0xffffffff, 4294967295, NULL},
        {"<u4", 4, 0, 0, "row 0 has length 0; lengths are 1 to"},
        {"<i8", 8, 0xffffffff, 4294967295, NULL},
        {"<i8", 8, 0x100000000, 0, "row 0 has length 4294967296"},
        {"<i8", 8, 0x8000000000000000, 0, "row 0 is negative"},
        {"<u8", 8, 0x8000000000000000, 0, "row 0 has length 9223372036854775808"},
        {">u8", 8, 0x0100000000000000, 1, NULL},
        {">i2", 2, 0x0102, 0x0201, NULL},
        {"<f8", 8, 0x3ff0000000000000, 1, NULL},
        {"<f8", 8, 0x40dfffc000000000, 32767, NULL},
        {"<f8", 8, 0x41efffffffe00000, 4294967295, NULL},
        {"<f8", 8, 0x41f0000000000000, 0, "row 0 has length 4294967296"},
        {"<f8", 8, 0x41efffffffffffff, 0, "row 0 is no whole number"}, /* 4294967295.9999995 */
        {"<f8", 8, 0x4200000000000000, 0, "row 0 is over 4294967295"},
        {"<f8", 8, 0x7fefffffffffffff, 0, "row 0 is over 4294967295"},
        {"<f8", 8, 0x3fe0000000000000, 0, "row 0 is no whole number"}, /* 0.5 */
        {"<f8", 8, 0x3ff0000000000001, 0, "row 0 is no whole number"},
        {"<f8", 8, 1, 0, "row 0 is no whole number"}, /* denormal */
        {"<f8", 8, 0, 0, "row 0 has length 0"},
        {"<f8", 8, 0x8000000000000000, 0, "row 0 has length 0"}, /* -0.0 */
        {"<f8", 8, 0xbff0000000000000, 0, "row 0 is negative"},
        {"<f8", 8, 0x7ff0000000000000, 0, "row 0 is NaN or infinite"},
        {"<f8", 8, 0xfff8000000000001, 0, "row 0 is NaN or infinite"},
        {"<f4", 4, 0x3f800000, 1, NULL},
        {"<f4", 4, 0x4b7fffff, 16777215, NULL},
        {"<f4", 4, 0x4f7fffff, 4294967040, NULL},
        {"<f4", 4, 0x4f800000, 0, "row 0 has length 4294967296"},
        {"<f4", 4, 0x40200000, 0, "row 0 is no whole number"}, /* 2.5 */
        {"<f4", 4, 0x7f800000, 0, "row 0 is NaN or infinite"},
    };

    for (size_t i = 0; i < N_CASES(cases); i++) {
        unsigned char bytes[256];
        char header[128];
        struct length_index *idx = NULL;
        struct skrull_error err = {0};
        int n = snprintf(header, sizeof(header),
                         "{'descr':'%s','fortran_order':False,'shape':(1,)}", cases[i].descr);
        size_t size = write_npy(bytes, header, (size_t)n) - 12;
        int status;

        memcpy(bytes + size, &cases[i].bits, cases[i].size);
        status = open_bytes(*state, "a.npy", bytes, size + cases[i].size, &idx, &err);
        print_message("# case %zu: %s\n", i, err.message);
        assert_int_equal(status, cases[i].length ? 0 : SKRULL_ERR_INVALID_ARGUMENT);
        assert_true(cases[i].length ? idx->lengths[0] == cases[i].length
                                    : strstr(err.message, cases[i].message) != NULL);
        index_close(idx);
    }
}

/* Many rows, through the buffer; the limit of rows. */
static void test_npy__many_rows(void **state)
{
    const size_t n = 100003;
    const struct index_options options = {.max_count = n - 1};
    char header[128];
    int header_size =
        snprintf(header, sizeof(header), "{'descr':'<u4','fortran_order':False,'shape':(%zu,)}", n);
    unsigned char *bytes = malloc(300 + 4 * n);
    struct length_index *idx = NULL;
    struct skrull_error err = {0};
    size_t size;

    assert_non_null(bytes);
    size = write_npy(bytes, header, (size_t)header_size) - 12;
    for (uint32_t i = 1; i <= n; i++) {
        memcpy(bytes + size, &i, 4);
        size += 4;
    }
    assert_int_equal(open_bytes(*state, "a.npy", bytes, size, &idx, NULL), 0);
    assert_int_equal(idx->count, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(idx->lengths[i] == i + 1);
    }
    index_close(idx);
    assert_int_equal(open_path(temporary_path(*state, "a.npy"), &options, &idx, &err),
                     SKRULL_ERR_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(err.message, "more than 100002 rows"));
    free(bytes);
}

/* Every beginning of a good file is refused, and none reads past its end. */
static void test_npy__cut_anywhere(void **state)
{
    static const char header[] = "{'descr':'<i4','fortran_order':False,'shape':(3,)}";
    unsigned char bytes[256];
    size_t size = write_npy(bytes, header, sizeof(header) - 1);

    for (size_t cut = 6; cut < size; cut++) {
        struct length_index *idx = NULL;
        struct skrull_error err = {0};

        assert_int_equal(open_bytes(*state, "a.npy", bytes, cut, &idx, &err), SKRULL_ERR_DATA_LOSS);
        assert_non_null(strstr(err.message, "truncated"));
    }
}

static void test_npy__options_that_do_not_apply(void **state)
{
    static const struct bad_case cases[] = {
        {"int32",
         "lengths.npy",
         0,
         "column length: npy has no columns; leave column empty",
         {.column = "length"}},
        {"int32",
         "lengths.npy",
         0,
         "unit document: npy knows sequences only",
         {.unit = SKRULL_UNIT_DOCUMENT}},
        {"int32", "lengths.npy", 0, "no .skx: it does not begin with SKRULLX", {.format = "skx"}},
        {"int32", "lengths.npy", 0, "line 1: byte 0x93", {.format = "text"}},
    };

    (void)state;
    check_bad("npy", cases, N_CASES(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, temporary_setup, temporary_teardown)
        TEST(test_npy__good_cases),
        TEST(test_npy__bad_cases),
        TEST(test_npy__headers),
        TEST(test_npy__items),
        TEST(test_npy__many_rows),
        TEST(test_npy__cut_anywhere),
        TEST(test_npy__options_that_do_not_apply),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

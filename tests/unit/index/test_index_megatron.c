/* Megatron .idx indexes: the cases of tests/data/formats/megatron_idx and of its look-alikes, and
 * what no file there shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/index/cases.h"

#define GOOD(name, file)                                                                           \
    {                                                                                              \
        name, file, "megatron", {0}, NULL                                                          \
    }
#define BAD(name, code, message)                                                                   \
    {                                                                                              \
        name, "d.idx", SKRULL_ERR_##code, message,                                                 \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

static const struct index_options by_document = {.unit = SKRULL_UNIT_DOCUMENT};
static const struct index_options forced = {.format = "megatron"};

static void test_megatron__good_cases(void **state)
{
    static const struct good_case cases[] = {
        GOOD("int32_one_seq_per_doc", "d_text_document.idx"),
        GOOD("zero_sequences", "d.idx"),
        GOOD("uint16", "d_text_document.idx"),
        GOOD("int64", "d.idx"),
        GOOD("sentences_multi_seq_docs", "d_text_sentence.idx"),
        GOOD("multimodal_modes", "d.idx"),
        GOOD("idx_only_large", "d.idx"),
        GOOD("int32_max_length", "d.idx"),
        {"int32_one_seq_per_doc",
         "d_text_document.idx",
         "megatron",
         {.unit = SKRULL_UNIT_DOCUMENT},
         NULL},
    };

    (void)state;
    check_good("megatron_idx", cases, N_CASES(cases));
}

static void test_megatron__bad_cases(void **state)
{
    static const struct bad_case cases[] = {
        BAD("bad_magic", INVALID_ARGUMENT, "line 1: MMIDIDY is no whole number"),
        BAD("bad_version", INVALID_ARGUMENT, "version 2; only version 1"),
        BAD("bad_dtype", INVALID_ARGUMENT, "token type 99; types 1 to 8"),
        BAD("bad_truncated_header", DATA_LOSS, "truncated in its header"),
        BAD("bad_truncated_lengths", DATA_LOSS, "truncated or bytes after its end"),
        BAD("bad_truncated_pointers", DATA_LOSS, "truncated or bytes after its end"),
        BAD("bad_trailing_bytes", DATA_LOSS,
            "12 sequences and 13 document indices, which are not 287"),
        BAD("bad_negative_length", INVALID_ARGUMENT, "row 1 has length -7;"),
        BAD("bad_int32_wrapped_length", INVALID_ARGUMENT,
            "has length -1294967296 (wrapped: by the pointers 3000000000); split"),
        BAD("bad_count_overflow", DATA_LOSS, "4611686018427387904 sequences"),
        BAD("bad_count_too_big", DATA_LOSS, "13 sequences"),
        BAD("bad_docs_do_not_close", DATA_LOSS, "is 11; they rise from 0 to the 12 sequences"),
        BAD("bad_docs_not_monotonic", DATA_LOSS, "document index 2 is 3; they rise"),
        BAD("bad_pointers_disagree", DATA_LOSS, "of the .bin, the rows before it end at"),
        BAD("bad_bin_too_short", DATA_LOSS, "take 492 bytes, the .bin beside it has 483"),
        BAD("bad_zero_length_mixed", INVALID_ARGUMENT, "row 1 has length 0; lengths are 1 to"),
        BAD("bad_all_zero", INVALID_ARGUMENT, "row 0 has length 0; lengths are 1 to"),
        BAD("bad_empty_file", INVALID_ARGUMENT, "empty file (0 bytes)"),
        BAD("bad_gzip_bytes", INVALID_ARGUMENT, "megatron inside of gzip; only text formats"),
        BAD("bad_big_endian", INVALID_ARGUMENT, "written by a big-endian machine"),
        {"sentences_multi_seq_docs",
         "d_text_sentence.idx",
         0,
         "row 2 has length 0;",
         {.unit = SKRULL_UNIT_DOCUMENT}},
        {"uint16",
         "d_text_document.idx",
         0,
         "column length: megatron has no columns",
         {.column = "length"}},
    };

    (void)state;
    check_bad("megatron_idx", cases, N_CASES(cases));
}

static void test_megatron__look_alikes(void **state)
{
    static const char all_ones[] = "lengths that are all 1: its values are in the .bin";
    static const struct bad_case fairseq[] = {
        {"uint16", "train.idx", 0, "a fairseq .idx of 12 sequences, by its size", {0}},
        {"uint16", "train.idx", 0, "a fairseq .idx of 12 sequences", {.format = "megatron"}},
        {"uint16", "train.idx", 0, "fairseq is not built yet", {.format = "fairseq"}},
        {"bad_truncated", "train.idx", SKRULL_ERR_DATA_LOSS, "truncated", {0}},
        {"bad_huffman",
         "train.idx",
         0,
         "HUFFIDX) is not built yet; write the lengths as text",
         {0}},
    };
    static const struct bad_case deepspeed[] = {
        {"uint8_small", "seqlen/seqlen_sample_to_metric.idx", 0, all_ones, {0}},
        {"uint16_code6", "seqlen/seqlen_sample_to_metric.idx", 0, all_ones, {0}},
        {"uint32_code7", "seqlen/seqlen_sample_to_metric.idx", 0, all_ones, {0}},
        {"bad_bin_short", "seqlen/seqlen_sample_to_metric.idx", 0, all_ones, {0}},
        {"index_to_metric_and_sample", "seqlen/seqlen_index_to_metric.idx", 0, "DeepSpeed", {0}},
        {"index_to_metric_and_sample", "seqlen/seqlen_index_to_sample.idx", 0, "DeepSpeed", {0}},
    };
    static const struct bad_case legacy[] = {
        {"fairseq_no_docs", "train.idx", 0, "TNTIDX) is not built yet", {0}},
        {"bad_truncated", "train.idx", 0, "TNTIDX) is not built yet", {0}},
        {"bad_two_dims", "train.idx", 0, "TNTIDX) is not built yet", {0}},
    };

    (void)state;
    check_bad("fairseq_mmap_idx", fairseq, N_CASES(fairseq));
    check_bad("deepspeed_metric", deepspeed, N_CASES(deepspeed));
    check_bad("legacy_tntidx", legacy, N_CASES(legacy));
}

struct idx_file {
    const int32_t *lengths;
    size_t n_lengths;
    const int64_t *documents;
    size_t n_documents;
    size_t n_modes;
};

/* With u16 tokens. */
static size_t write_idx(unsigned char *out, const struct idx_file *file)
{
    uint64_t n = file->n_lengths, d = file->n_documents;
    int64_t pointer = 0;
    size_t at = 34;

    memcpy(out, "MMIDIDX\0\0\1\0\0\0\0\0\0\0\x08", 18);
    memcpy(out + 18, &n, 8);
    memcpy(out + 26, &d, 8);
    if (n > 0) {
        memcpy(out + at, file->lengths, 4 * n);
    }
    at += 4 * n;
    for (size_t i = 0; i < n; i++) {
        memcpy(out + at, &pointer, 8);
        pointer += 2 * (int64_t)file->lengths[i];
        at += 8;
    }
    if (d > 0) {
        memcpy(out + at, file->documents, 8 * d);
    }
    at += 8 * d;
    memset(out + at, 0, file->n_modes);
    return at + file->n_modes;
}

#define LENGTHS(...) (const int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / 4
#define DOCUMENTS(...) (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / 8

static void test_megatron__units(void **state)
{
    const struct {
        struct idx_file file;
        const struct index_options *options;
        uint64_t count;
        uint32_t last;
        const char *message; /* NULL: good */
    } cases[] = {
        {{LENGTHS(3, 4, 5), DOCUMENTS(0, 3), 0}, NULL, 3, 5, NULL},
        {{LENGTHS(3, 4, 5), DOCUMENTS(0, 3), 0}, &by_document, 1, 12, NULL},
        {{LENGTHS(3, 4, 5), DOCUMENTS(0, 1, 3), 0}, &by_document, 2, 9, NULL},
        {{LENGTHS(3, 4, 5), DOCUMENTS(0, 1, 3), 3}, &by_document, 2, 9, NULL},
        {{LENGTHS(3, 0, 5), DOCUMENTS(0, 1, 3), 0}, &by_document, 2, 5, NULL},
        {{LENGTHS(3, 0, 5), DOCUMENTS(0, 1, 3), 0}, NULL, 0, 0, "row 1 has length 0"},
        {{LENGTHS(3, 0, 5), DOCUMENTS(0, 1, 2, 3), 0}, &by_document, 0, 0, "row 1 has length 0"},
        {{LENGTHS(3, 4, 5), DOCUMENTS(0, 0, 3), 0}, &by_document, 0, 0, "row 0 has length 0"},
        {{LENGTHS(3, 4, 5), DOCUMENTS(0, 0, 3), 0}, NULL, 3, 5, NULL},
        {{LENGTHS(2147483647, 2147483647, 1), DOCUMENTS(0, 3), 0},
         &by_document,
         1,
         UINT32_MAX,
         NULL},
        {{LENGTHS(2147483647, 2147483647, 2), DOCUMENTS(0, 3), 0},
         &by_document,
         0,
         0,
         "row 0 has length 4294967296; lengths are 1 to 4294967295"},
        {{LENGTHS(3, 4, 5), DOCUMENTS(1, 3), 0}, NULL, 0, 0, "document index 0 is 1; they rise"},
        {{LENGTHS(3, 4, 5), DOCUMENTS(0, 4), 0}, NULL, 0, 0, "document index 1 is 4; they rise"},
        {{LENGTHS(3, 4, 5), DOCUMENTS(0, -1, 3), 0},
         NULL,
         0,
         0,
         "document index 1 is -1; they rise"},
        {{LENGTHS(3, 4, 5), NULL, 0, 0}, NULL, 0, 0, "it has no document index"},
        {{LENGTHS(3, 4, 5), DOCUMENTS(0, 3), 2}, NULL, 0, 0, "truncated or bytes after its end"},
        {{LENGTHS(1, 1, 1), DOCUMENTS(0, 3), 0}, NULL, 0, 0, "DeepSpeed"},
        {{LENGTHS(1, 1, 1), DOCUMENTS(0, 3), 0}, &forced, 3, 1, NULL},
        {{LENGTHS(1, 1, 1), DOCUMENTS(0, 1, 2, 3), 0}, NULL, 3, 1, NULL},
        {{LENGTHS(1, 1, 2), DOCUMENTS(0, 3), 0}, NULL, 3, 2, NULL},
        {{LENGTHS(1), DOCUMENTS(0, 1), 0}, NULL, 1, 1, NULL},
        {{LENGTHS(3, -1), DOCUMENTS(0, 2), 0}, NULL, 0, 0, "row 1 has length -1; split"},
    };

    for (size_t i = 0; i < N_CASES(cases); i++) {
        unsigned char bytes[512];
        struct length_index *idx = NULL;
        struct skrull_error err = {0};
        int status;

        temporary_write(*state, "a.idx", bytes, write_idx(bytes, &cases[i].file));
        status = open_path(temporary_path(*state, "a.idx"), cases[i].options, &idx, &err);
        print_message("# case %zu: %s\n", i, err.message);
        if (cases[i].message) {
            assert_true(status < 0);
            assert_non_null(strstr(err.message, cases[i].message));
        } else {
            assert_int_equal(status, 0);
            assert_int_equal(idx->count, cases[i].count);
            assert_int_equal(idx->lengths[idx->count - 1], cases[i].last);
        }
        index_close(idx);
    }
}

/* The .bin is looked for beside the file itself, and only its size counts. */
static void test_megatron__bin(void **state)
{
    const struct idx_file file = {LENGTHS(3, 4, 5), DOCUMENTS(0, 3), 0};
    unsigned char bytes[512];
    char zeros[32] = {0};
    size_t size = write_idx(bytes, &file);
    struct length_index *idx = NULL;
    struct skrull_error err = {0};

    temporary_write(*state, "a.bin", zeros, 23);
    assert_int_equal(open_bytes(*state, "a.idx", bytes, size, &idx, &err), SKRULL_ERR_DATA_LOSS);
    assert_non_null(strstr(err.message, "take 24 bytes, the .bin beside it has 23"));
    assert_int_equal(symlink("a.idx", temporary_path(*state, "b.idx")), 0);
    assert_int_equal(open_path(temporary_path(*state, "b.idx"), NULL, &idx, NULL),
                     SKRULL_ERR_DATA_LOSS);
    assert_int_equal(open_bytes(*state, "a.index", bytes, size, &idx, NULL), 0);
    index_close(idx);
    temporary_write(*state, "a.bin", zeros, 25);
    assert_int_equal(open_path(temporary_path(*state, "a.idx"), NULL, &idx, NULL),
                     SKRULL_ERR_DATA_LOSS);
    temporary_write(*state, "a.bin", zeros, 24);
    assert_int_equal(open_path(temporary_path(*state, "a.idx"), NULL, &idx, NULL), 0);
    index_close(idx);
}

/* More items than a buffer holds, in all three arrays. */
static void test_megatron__many_rows(void **state)
{
    const size_t n = 50001;
    int32_t *lengths = malloc(n * sizeof(*lengths));
    int64_t *documents = malloc((n + 1) * sizeof(*documents));
    unsigned char *bytes = malloc(100 + n * 20);
    struct idx_file file = {lengths, n, documents, 0, 0};
    struct length_index *idx = NULL;
    size_t size;

    assert_true(lengths && documents && bytes);
    for (size_t i = 0; i < n; i++) {
        lengths[i] = (int32_t)(1 + i % 977);
        if (i % 3 == 0) {
            documents[file.n_documents++] = (int64_t)i;
        }
    }
    documents[file.n_documents++] = (int64_t)n;
    size = write_idx(bytes, &file);
    assert_int_equal(open_bytes(*state, "a.idx", bytes, size, &idx, NULL), 0);
    assert_int_equal(idx->count, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(idx->lengths[i] == (uint32_t)lengths[i]);
    }
    index_close(idx);
    assert_int_equal(open_path(temporary_path(*state, "a.idx"), &by_document, &idx, NULL), 0);
    assert_int_equal(idx->count, n / 3);
    for (size_t i = 0; i < n / 3; i++) {
        int32_t *of = &lengths[3 * i];

        assert_true(idx->lengths[i] == (uint32_t)(of[0] + of[1] + of[2]));
    }
    index_close(idx);
    free(bytes);
    free(documents);
    free(lengths);
}

/* Every beginning of a good file, and every changed byte of it: refused or read, never past the
 * end. */
static void test_megatron__cuts_and_damage(void **state)
{
    const struct idx_file file = {LENGTHS(3, 4, 5), DOCUMENTS(0, 1, 3), 0};
    unsigned char bytes[512];
    size_t size = write_idx(bytes, &file);
    struct length_index *idx = NULL;

    for (size_t cut = 9; cut < size; cut++) {
        struct skrull_error err = {0};
        int status = open_bytes(*state, "a.idx", bytes, cut, &idx, &err);
        int is_fairseq = cut == 26 + 12 * file.n_lengths; /* it might as well be */

        assert_int_equal(status, is_fairseq ? SKRULL_ERR_INVALID_ARGUMENT : SKRULL_ERR_DATA_LOSS);
        assert_non_null(strstr(err.message, is_fairseq ? "fairseq" : "truncated"));
    }
    for (size_t i = 9; i < size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (unsigned char)(1 << bit);
            idx = NULL;
            (void)open_bytes(*state, "a.idx", bytes, size, &idx, NULL);
            assert_true(!idx || idx->count == 3);
            index_close(idx);
            bytes[i] ^= (unsigned char)(1 << bit);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, temporary_setup, temporary_teardown)
        TEST(test_megatron__good_cases),
        TEST(test_megatron__bad_cases),
        TEST(test_megatron__look_alikes),
        TEST(test_megatron__units),
        TEST(test_megatron__bin),
        TEST(test_megatron__many_rows),
        TEST(test_megatron__cuts_and_damage),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Files of other formats are refused by name and with the way out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/index/opened.h"

#define BYTES(literal) (literal), sizeof(literal) - 1

static void test_detect__magics(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *message;
    } cases[] = {
        {BYTES("TNTIDX\0\0\1\0\0\0\0\0\0\0"), "TNTIDX) is not built yet"},
        {BYTES("HUFFIDX\0\0\1\0\0\0"), "HUFFIDX) is not built yet"},
        {BYTES("PK\x03\x04\x14\0"), "npz (or another zip) is not built yet"},
        {BYTES("PK\x05\x06\0\0"), "npz (an empty zip) is not built yet"},
        {BYTES("PAR1\x15\x04"), "parquet is not built yet"},
        {BYTES("PARE\x15\x04"), "encrypted Parquet and no length index"},
        {BYTES("\xff\xff\xff\xff\x10\1\0\0"), "arrow (IPC stream) is not built yet"},
        {BYTES("ARROW1\0\0"), "arrow (IPC file, Feather v2) is not built yet"},
        {BYTES("FEA1"), "Feather v1 and no length index"},
        {BYTES("BZh91AY"), "bzip2 is not built yet; bunzip2 it first"},
        {BYTES("\xfd"
               "7zXZ\0"),
         "xz is not built yet; unxz it first"},
        {BYTES("SQLite format 3\0\x10\0"), "SQLite (energon) is not built yet"},
        {BYTES("\x88\xd8\x34\x01\1\0\0\0"), "llm.c token shard is not built yet"},
        {BYTES("\xa1\xd9\x34\x01\7\0\0\0"), "llm.c token shard is not built yet"},
        {BYTES("\x80\x04\x95\0\0\0"), "a pickle, which can run code, and no length index"},
        {BYTES("version https://git-lfs.github.com/spec/v1\n"), "git lfs pull fetches the file"},
        {BYTES("\xff\xfe"
               "5\0"),
         "UTF-16 text (PowerShell's > writes it)"},
        {BYTES("\xfe\xff\0"
               "5"),
         "UTF-16 text"},
        {BYTES("\x7f"
               "ELF\2\1"),
         "a program (ELF)"},
        {BYTES("12345\nLANC"), "lance is not built yet"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct length_index *idx = NULL;
        struct skrull_error err = {0};

        assert_int_equal(open_bytes(*state, "a", cases[i].bytes, cases[i].size, &idx, &err),
                         SKRULL_ERR_INVALID_ARGUMENT);
        print_message("# case %zu: %s\n", i, err.message);
        assert_null(idx);
        assert_non_null(strstr(err.message, "/a: "));
        assert_non_null(strstr(err.message, cases[i].message));
    }
}

static void test_detect__tar(void **state)
{
    char bytes[512] = "sample.tokens.bin";
    struct length_index *idx = NULL;
    struct skrull_error err = {0};

    memcpy(bytes + 257, "ustar", 6);
    assert_int_equal(open_bytes(*state, "a", bytes, sizeof(bytes), &idx, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "tar (WebDataset) is not built yet"));
}

/* A magic that the file is too short for is no match, nor read past the file. */
static void test_detect__short_files(void **state)
{
    struct length_index *idx = NULL;
    struct skrull_error err = {0};

    assert_int_equal(open_bytes(*state, "a", "P", 1, &idx, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "line 1: P is no whole number"));
    assert_int_equal(open_bytes(*state, "a", "SKRUL", 5, &idx, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "line 1: SKRUL is no whole number"));
    assert_int_equal(open_bytes(*state, "a", "5", 1, &idx, NULL), 0);
    index_close(idx);
}

static void test_detect__folders(void **state)
{
    static const char *const cases[][2] = {
        {"dataset_dict.json", "arrow (Hugging Face DatasetDict folder) is not built yet"},
        {"state.json", "arrow (Hugging Face data set folder) is not built yet"},
        {"index.json", "mds or litdata (data set folder) is not built yet"},
        {".nv-meta", "energon (data set folder) is not built yet"},
        {"_versions", "lance (data set folder) is not built yet"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct temporary folder;
        struct length_index *idx = NULL;
        struct skrull_error err = {0};

        temporary_make(&folder);
        temporary_write(&folder, cases[i][0], "{}", 2);
        assert_int_equal(open_path(folder.path, NULL, &idx, &err), SKRULL_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, cases[i][1]));
        temporary_remove(&folder);
    }
    (void)state;
}

/* A data set's own metadata, given instead of its folder. */
static void test_detect__metadata(void **state)
{
    static const struct {
        const char *name, *text, *message;
    } cases[] = {
        {"dataset_dict.json", "{\"splits\": [\"train\", \"test\"]}",
         "arrow (of a Hugging Face DatasetDict, this is the list of splits) is not built yet; "
         "write the lengths as text"},
        {"state.json", "{\n  \"_data_files\": [\n    {\"filename\": \"data.arrow\"}\n  ]\n}",
         "arrow (of a Hugging Face data set, this is the list of files) is not built yet"},
        {"index.json", "{\"shards\": [{\"column_encodings\": [\"int\"], \"samples\": 5}]}",
         "mds (this is the list of shards) is not built yet"},
        {"index.json", "{\"chunks\": [{\"chunk_bytes\": 5}], \"config\": {}}",
         "litdata (this is the list of chunks) is not built yet"},
        {"other.json", "{\"shards\": [{\"samples\": 5}]}", "no field that is known"},
    };
    static const char columns[] = "{\"chunks\": 5}\n";
    const struct index_options chunks = {.column = "chunks"};
    struct length_index *idx = NULL;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct skrull_error err = {0};

        assert_int_equal(
            open_bytes(*state, cases[i].name, cases[i].text, strlen(cases[i].text), &idx, &err),
            SKRULL_ERR_INVALID_ARGUMENT);
        print_message("# case %zu: %s\n", i, err.message);
        assert_non_null(strstr(err.message, cases[i].message));
    }
    /* Who names a column has lengths in it, whatever the file's name. */
    temporary_write(*state, "index.json", columns, strlen(columns));
    assert_int_equal(open_path(temporary_path(*state, "index.json"), &chunks, &idx, NULL), 0);
    assert_int_equal(idx->tokens, 5);
    index_close(idx);
    assert_int_equal(open_bytes(*state, "index.json", "[5, 6]", 6, &idx, NULL), 0);
    index_close(idx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_detect__magics, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_detect__tar, temporary_setup, temporary_teardown),
        cmocka_unit_test_setup_teardown(test_detect__short_files, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test(test_detect__folders),
        cmocka_unit_test_setup_teardown(test_detect__metadata, temporary_setup, temporary_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

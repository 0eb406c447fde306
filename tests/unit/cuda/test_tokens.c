/* Tests of worker/tokens.c. */
#include "tokens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "temporary.h"

static struct temporary folder;
static char prefix[TEMPORARY_PATH_SIZE];

static void write_file(const char *suffix, const void *data, size_t size)
{
    char path[TEMPORARY_PATH_SIZE + 8];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s%s", prefix, suffix);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Three sequences of 3, 1 and 2 tokens of 16 bits, the last two one document. */
static void write_megatron(void)
{
    static const uint16_t tokens[] = {10, 11, 12, 20, 30, 31};
    static const uint64_t head[] = {1, 3, 3}, offsets[] = {0, 6, 8}, documents[] = {0, 1, 3};
    static const uint32_t lengths[] = {3, 1, 2};
    unsigned char idx[94], *at = idx;

    memcpy(at, "MMIDIDX\0\0", 9);
    memcpy(at + 9, &head[0], 8);
    at[17] = 8;
    memcpy(at + 18, &head[1], 16);
    memcpy(at + 34, lengths, sizeof(lengths));
    memcpy(at + 46, offsets, sizeof(offsets));
    memcpy(at + 70, documents, sizeof(documents));
    write_file(".idx", idx, sizeof(idx));
    write_file(".bin", tokens, sizeof(tokens));
}

static struct token_source *open_megatron(bool is_document, uint32_t vocabulary)
{
    const char *const prefixes[] = {prefix};
    struct token_source *source = NULL;

    assert_int_equal(tokens_megatron(prefixes, &is_document, 1, vocabulary, &source, NULL), 0);
    return source;
}

static void test_tokens_read__megatron(void **state)
{
    struct token_source *source;
    int32_t tokens[4] = {0};

    (void)state;
    write_megatron();
    source = open_megatron(false, 100);
    assert_int_equal(tokens_read(source, &(struct token_range){0, 0, 1, 2}, tokens, NULL), 0);
    assert_int_equal(tokens[0], 11);
    assert_int_equal(tokens[1], 12);
    assert_int_equal(tokens_read(source, &(struct token_range){0, 2, 0, 2}, tokens, NULL), 0);
    assert_int_equal(tokens[1], 31);
    tokens_free(source);
    source = open_megatron(true, 100);
    assert_int_equal(tokens_read(source, &(struct token_range){0, 1, 0, 3}, tokens, NULL), 0);
    assert_int_equal(tokens[0], 20);
    assert_int_equal(tokens[2], 31);
    tokens_free(source);
}

static void test_tokens_read__refuses_what_is_not_there(void **state)
{
    struct token_source *source;
    struct skrull_error err;
    int32_t tokens[8];

    (void)state;
    write_megatron();
    source = open_megatron(false, 31);
    assert_int_equal(tokens_read(source, &(struct token_range){0, 3, 0, 1}, tokens, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(tokens_read(source, &(struct token_range){0, 2, 0, 3}, tokens, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(tokens_read(source, &(struct token_range){1, 0, 0, 1}, tokens, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(tokens_read(source, &(struct token_range){0, 2, 1, 1}, tokens, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "token 31; the model's vocabulary is 31"));
    tokens_free(source);
}

/* Every file that is cut short is refused, or read within its bounds. */
static void test_tokens_megatron__cut_files(void **state)
{
    const char *const prefixes[] = {prefix};
    unsigned char idx[94];
    char path[TEMPORARY_PATH_SIZE + 8];
    bool is_document = true;
    FILE *file;

    (void)state;
    write_megatron();
    (void)snprintf(path, sizeof(path), "%s.idx", prefix);
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(idx, 1, sizeof(idx), file), sizeof(idx));
    assert_int_equal(fclose(file), 0);
    for (size_t size = 0; size < sizeof(idx); size++) {
        struct token_source *source;

        write_file(".idx", idx, size);
        assert_int_equal(tokens_megatron(prefixes, &is_document, 1, 100, &source, NULL),
                         SKRULL_ERR_INVALID_ARGUMENT);
    }
    /* Offsets that lie outside. */
    memset(idx + 46, 0xff, 48);
    write_file(".idx", idx, sizeof(idx));
    for (uint64_t row = 0; row < 4; row++) {
        struct token_source *source = open_megatron(row & 1, 100);
        int32_t token;

        assert_int_equal(tokens_read(source, &(struct token_range){0, row, 0, 1}, &token, NULL),
                         SKRULL_ERR_INVALID_ARGUMENT);
        tokens_free(source);
    }
}

static void test_tokens_generated__same_whatever_is_asked(void **state)
{
    struct token_source *source;
    int32_t whole[64], part[8];

    (void)state;
    assert_int_equal(tokens_generated(50, &source, NULL), 0);
    assert_int_equal(tokens_read(source, &(struct token_range){1, 7, 0, 64}, whole, NULL), 0);
    assert_int_equal(tokens_read(source, &(struct token_range){1, 7, 40, 8}, part, NULL), 0);
    assert_memory_equal(part, whole + 40, sizeof(part));
    for (int i = 0; i < 64; i++) {
        assert_in_range(whole[i], 0, 49);
    }
    assert_int_equal(tokens_read(source, &(struct token_range){1, 8, 40, 8}, part, NULL), 0);
    assert_memory_not_equal(part, whole + 40, sizeof(part));
    tokens_free(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_read__megatron),
        cmocka_unit_test(test_tokens_read__refuses_what_is_not_there),
        cmocka_unit_test(test_tokens_megatron__cut_files),
        cmocka_unit_test(test_tokens_generated__same_whatever_is_asked),
    };
    int n_failed;

    temporary_make(&folder);
    (void)snprintf(prefix, sizeof(prefix), "%s/tokens", folder.path);
    n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    temporary_remove(&folder);
    return n_failed;
}

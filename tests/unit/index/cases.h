/* Cases that are files: tests/data/formats/FOLDER/CASE/FILE beside its expected.txt, a length a
 * line, or expected_error.txt. CMocka's headers come first. */
#pragma once

#include "unit/index/opened.h"

struct good_case {
    const char *name, *file; /* "crlf", "lengths.txt" */
    const char *format;      /* that it is opened as */
    struct index_options options;
    const char *expected; /* NULL: expected.txt */
};

struct bad_case {
    const char *name, *file;
    int code;            /* 0: INVALID_ARGUMENT */
    const char *message; /* part of it */
    struct index_options options;
};

static inline const char *data_path(const char *folder, const char *name, const char *file)
{
    static char path[1024];
    const char *data = getenv("SKRULL_TEST_DATA");

    assert_non_null(data);
    (void)snprintf(path, sizeof(path), "%s/formats/%s/%s/%s", data, folder, name, file);
    return path;
}

static inline void assert_lengths_of(const struct length_index *idx, const char *expected_path)
{
    FILE *file = fopen(expected_path, "re");
    uint64_t count = 0, tokens = 0;
    unsigned long length;

    assert_non_null(file);
    while (fscanf(file, "%lu", &length) == 1) {
        assert_true(count < idx->count);
        assert_int_equal(idx->lengths[count++], length);
        tokens += length;
    }
    (void)fclose(file);
    assert_int_equal(idx->count, count);
    assert_int_equal(idx->tokens, tokens);
    assert_null(idx->loss_tokens);
    assert_int_equal(idx->n_loss_tokens, 0);
}

/* Opened by content, where the options name no format, and by the format's name. */
static inline void check_good(const char *folder, const struct good_case *cases, size_t n_cases)
{
    for (size_t i = 0; i < n_cases; i++) {
        for (int by_name = 0; by_name < 2; by_name++) {
            struct index_options options = cases[i].options;
            struct length_index *idx = NULL;
            struct skrull_error err = {0};
            uint64_t hash;
            int status;

            options.format = by_name ? cases[i].format : options.format;
            status =
                open_path(data_path(folder, cases[i].name, cases[i].file), &options, &idx, &err);
            print_message("# %s: %s\n", cases[i].name, err.message);
            assert_int_equal(status, 0);
            assert_string_equal(idx->format, cases[i].format);
            assert_lengths_of(idx,
                              data_path(folder, cases[i].name,
                                        cases[i].expected ? cases[i].expected : "expected.txt"));
            assert_int_equal(index_verify(idx, &hash, NULL), 0);
            index_close(idx);
        }
    }
}

/* The message names the file, too. */
static inline void check_bad(const char *folder, const struct bad_case *cases, size_t n_cases)
{
    for (size_t i = 0; i < n_cases; i++) {
        struct length_index *idx = NULL;
        struct skrull_error err = {0};
        int status = open_path(data_path(folder, cases[i].name, cases[i].file), &cases[i].options,
                               &idx, &err);

        print_message("# %s: %s\n", cases[i].name, err.message);
        assert_int_equal(status, cases[i].code ? cases[i].code : SKRULL_ERR_INVALID_ARGUMENT);
        assert_null(idx);
        assert_non_null(strstr(err.message, cases[i].message));
        assert_non_null(strstr(err.message, cases[i].file));
    }
}

#define N_CASES(cases) (sizeof(cases) / sizeof((cases)[0]))

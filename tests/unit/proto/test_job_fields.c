/* job_fields.c: names, single values, and the table itself. */
#include "job_fields.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void test_job_name_is__either_spelling(void **state)
{
    static const struct {
        const char *snake, *name;
        bool is_same;
    } rows[] = {
        {"seed", "seed", true},
        {"seed", "Seed", false},
        {"seed", "see", false},
        {"seed", "seeds", false},
        {"last_batch", "last_batch", true},
        {"last_batch", "lastBatch", true},
        {"last_batch", "lastbatch", false},
        {"last_batch", "LastBatch", false},
        {"last_batch", "last_Batch", false},
        {"last_batch", "last", false},
        {"last_batch", "lastB", false},
        {"micro_batch_min", "microBatchMin", true},
        {"micro_batch_min", "microBatch_min", false},
        {"micro_batch_min", "micro_batchMin", false},
        {"batch.bucket_tokens", "batch.bucketTokens", true},
        {"batch.bucket_tokens", "batch", false},
        {"", "", true},
        {"", "a", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        print_message("# %s %s\n", rows[i].snake, rows[i].name);
        assert_int_equal(job_name_is(rows[i].snake, rows[i].name), rows[i].is_same);
    }
}

static void test_job_field_find__every_field(void **state)
{
    (void)state;
    for (const struct job_field *field = job_fields; field->path; field++) {
        assert_ptr_equal(job_field_find(job_fields, field->path), field);
    }
    assert_ptr_equal(job_field_find(job_fields, "parallel.ranksPerNode"),
                     job_field_find(job_fields, "parallel.ranks_per_node"));
    assert_null(job_field_find(job_fields, "batch"));
    assert_null(job_field_find(job_fields, "index"));
    assert_non_null(job_field_find(job_data_fields, "overLength"));
    assert_null(job_field_find(job_data_fields, "seed"));
}

/* Each row of the table agrees with itself. */
static void check_row(const struct job_field *field)
{
    struct skrull_error err;

    print_message("# %s\n", field->path);
    assert_true(strlen(field->path) + sizeof("data[1023].") <= JOB_PATH_SIZE);
    switch (field->kind) {
    case JOB_FIELD_U32:
        assert_true(field->max <= UINT32_MAX);
        assert_true(field->min <= field->max);
        assert_true(field->number == 0 || field->number >= field->min);
        assert_true(field->number <= field->max);
        break;
    case JOB_FIELD_U64:
        assert_true(field->min <= field->max);
        break;
    case JOB_FIELD_WORD:
        assert_non_null(field->words);
        assert_int_equal(job_field_check_number(field, field->path, field->number, &err), 0);
        assert_null(field->words[field->max].word);
        for (uint64_t i = 0; i < field->max; i++) {
            assert_non_null(field->words[i].word);
        }
        break;
    case JOB_FIELD_TEXT:
        assert_true(field->max > 0);
        assert_true(!field->text || strlen(field->text) <= field->max);
        break;
    case JOB_FIELD_DOUBLE:
        break;
    }
}

static void test_job_fields__rows(void **state)
{
    (void)state;
    for (const struct job_field *field = job_fields; field->path; field++) {
        check_row(field);
    }
    for (const struct job_field *field = job_data_fields; field->path; field++) {
        check_row(field);
    }
}

static void test_job_field_set__keeps_neighbours(void **state)
{
    struct skrull_job job = {0};

    (void)state;
    job_field_set_number(job_field_find(job_fields, "parallel.cp"), &job, 7);
    assert_int_equal(job.parallel.cp, 7);
    assert_int_equal(job.parallel.dp, 0);
    assert_int_equal(job.parallel.tp, 0);
    job_field_set_number(job_field_find(job_fields, "seed"), &job, INT64_MAX);
    assert_int_equal(job.seed, INT64_MAX);
    job_field_set_number(job_field_find(job_fields, "loss"), &job, SKRULL_LOSS_NONE);
    assert_int_equal(job.loss, SKRULL_LOSS_NONE);
    assert_int_equal(job_field_number(job_field_find(job_fields, "loss"), &job), SKRULL_LOSS_NONE);
    job_field_set_text(job_field_find(job_fields, "policy"), &job, "p");
    assert_string_equal(job.policy, "p");
    assert_null(job.effort);
}

static void test_job_field_number__negative_word_is_above_every_range(void **state)
{
    const struct job_field *field = job_field_find(job_fields, "order");
    struct skrull_job job = {0};
    const int number = -1;
    struct skrull_error err;

    (void)state;
    memcpy(&job.order, &number, sizeof(number));
    assert_int_equal(job_field_check_number(field, "order", job_field_number(field, &job), &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "order: the enum has no such number, 0 to 3 are allowed");
}

static void test_job_field_check_double__range(void **state)
{
    const struct job_field *field = job_field_find(job_data_fields, "weight");
    const double wrong[] = {-1, -1e-300, (double)NAN, (double)INFINITY, -(double)INFINITY};
    struct skrull_error err;

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(job_field_check_double(field, "w", wrong[i], &err),
                         SKRULL_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "is out of range"));
    }
    assert_int_equal(job_field_check_double(field, "w", 1e-300, &err), 0);
    assert_int_equal(job_field_check_double(field, "w", 0, &err), 0);
    assert_int_equal(job_field_check_double(field, "w", -0.0, &err), 0);
}

static void test_job_field_parse_number__leaves_the_result_on_failure(void **state)
{
    const struct job_field *field = job_field_find(job_fields, "batch.align");
    uint64_t value = 77;

    (void)state;
    assert_int_equal(job_field_parse_number(field, "a", "0", &value, NULL),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(job_field_parse_number(field, "a", "x", &value, NULL),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(value, 77);
    assert_int_equal(job_field_parse_number(field, "a", "128", &value, NULL), 0);
    assert_int_equal(value, 128);
}

static void test_job_field_check_word__names(void **state)
{
    const struct job_field *field = job_field_find(job_fields, "batch.equal_micro_batches");
    struct skrull_error err;
    int number = 0;

    (void)state;
    assert_int_equal(job_field_check_word(field, "e", "false", &number, &err), 0);
    assert_int_equal(number, SKRULL_EQUAL_FALSE);
    assert_int_equal(job_field_check_word(field, "e", "EQUAL_MICRO_BATCHES_TRUE", &number, &err),
                     0);
    assert_int_equal(number, SKRULL_EQUAL_TRUE);
    assert_int_equal(
        job_field_check_word(field, "e", "EQUAL_MICRO_BATCHES_UNSPECIFIED", &number, &err), 0);
    assert_int_equal(number, SKRULL_EQUAL_AUTO);
    assert_int_equal(job_field_check_word(field, "e", "EQUAL_UNSPECIFIED", &number, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(job_field_check_word(field, "e", "yes", &number, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "e: yes is unknown, allowed: auto, true or false");
    assert_int_equal(number, SKRULL_EQUAL_AUTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job_name_is__either_spelling),
        cmocka_unit_test(test_job_field_find__every_field),
        cmocka_unit_test(test_job_fields__rows),
        cmocka_unit_test(test_job_field_set__keeps_neighbours),
        cmocka_unit_test(test_job_field_number__negative_word_is_above_every_range),
        cmocka_unit_test(test_job_field_check_double__range),
        cmocka_unit_test(test_job_field_parse_number__leaves_the_result_on_failure),
        cmocka_unit_test(test_job_field_check_word__names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Jobs as values: every field counts, save those that only the daemon says. */
#include "job/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"
#include "job_fields.h"
#include "unit/job/job_folder.h"

/* A changed value of a field, whatever its kind. */
static void change(void *object, const struct job_field *field)
{
    unsigned char *member = (unsigned char *)object + field->offset;

    if (field->kind == JOB_FIELD_TEXT) {
        job_field_set_text(field, object, "changed");
    } else {
        *member ^= 1;
    }
}

/* Changes each field of the table in a copy and looks whether that is seen. */
static void change_each(const struct skrull_job *spec, const struct job_field *fields,
                        bool is_of_data)
{
    const struct job_field *field;
    struct skrull_job *copy;
    struct arena *arena;

    for (field = fields; field->path; field++) {
        arena = arena_new(1 << 20);
        copy = spec_copy(arena, spec);
        assert_non_null(copy);
        assert_true(spec_is_same(copy, spec));
        change(is_of_data ? (void *)&copy->data[copy->n_data - 1] : (void *)copy, field);
        if (spec_is_same(copy, spec)) {
            fail_msg("a change of %s is not seen", field->path);
        }
        arena_free(arena);
    }
}

static void test_spec_is_same__each_field(void **state)
{
    struct job_folder *folder = *state;
    const struct skrull_job *spec;

    folder->data[1] = folder->data[0];
    folder->spec.n_data = 2;
    spec = job_folder_spec(folder);
    change_each(spec, job_fields, false);
    change_each(spec, job_data_fields, true);
}

static void test_spec_is_same__number_of_data_sets(void **state)
{
    struct job_folder *folder = *state;
    struct skrull_job two;

    folder->data[1] = folder->data[0];
    two = *job_folder_spec(folder);
    two.n_data = 2;
    assert_false(spec_is_same(&two, &folder->spec));
    assert_false(spec_is_same(&folder->spec, &two));
}

static void test_spec_is_same__output_does_not_count(void **state)
{
    struct job_folder *folder = *state;
    struct skrull_job created = *job_folder_spec(folder);

    created.uid = NULL;
    created.revision = 9;
    created.info.steps = 3;
    assert_true(spec_is_same(&created, &folder->spec));
    created.model.config = ""; /* as good as none */
    assert_true(spec_is_same(&created, &folder->spec));
}

static void test_spec_copy__owns_everything(void **state)
{
    struct job_folder *folder = *state;
    struct skrull_index_info indexes[1] = {{.count = 1, .tokens = 2, .payload_hash = 3}};
    struct skrull_revision_info revisions[1] = {{1, 0, 8}};
    char name[] = "job", index_path[] = "a.txt", uid[] = "0123";
    struct arena *arena = arena_new(1 << 20);
    struct skrull_job *copy;

    folder->spec.name = name;
    folder->spec.uid = uid;
    folder->data[0].index = index_path;
    folder->spec.info.indexes = indexes;
    folder->spec.info.n_indexes = 1;
    folder->spec.info.revisions = revisions;
    folder->spec.info.n_revisions = 1;
    copy = spec_copy(arena, job_folder_spec(folder));
    assert_non_null(copy);
    memset(name, 'x', 3);
    memset(index_path, 'x', 5);
    memset(uid, 'x', 4);
    memset(indexes, 0, sizeof(indexes));
    memset(revisions, 0, sizeof(revisions));
    assert_string_equal(copy->name, "job");
    assert_string_equal(copy->uid, "0123");
    assert_string_equal(copy->data[0].index, "a.txt");
    assert_int_equal(copy->info.indexes[0].payload_hash, 3);
    assert_int_equal(copy->info.revisions[0].global, 8);
    arena_free(arena);
}

static void test_spec_copy__out_of_memory(void **state)
{
    struct job_folder *folder = *state;
    const struct skrull_job *spec = job_folder_spec(folder);
    struct skrull_job *copy = NULL;
    struct arena *arena;
    size_t bytes, n_failed = 0;

    for (bytes = 0; !copy && bytes < 4096; bytes += 16) {
        arena = arena_new(bytes);
        copy = spec_copy(arena, spec);
        n_failed += !copy;
        if (copy) {
            assert_true(spec_is_same(copy, spec));
        }
        arena_free(arena);
    }
    assert_non_null(copy);
    assert_true(n_failed > 10);
}

static void test_spec_clear_output__clears(void **state)
{
    struct job_folder *folder = *state;

    folder->spec.info.steps = 5;
    spec_clear_output(&folder->spec);
    assert_null(folder->spec.uid);
    assert_int_equal(folder->spec.revision, 0);
    assert_int_equal(folder->spec.info.steps, 0);
    assert_string_equal(folder->spec.name, "job");
}

#define WITH_FOLDER(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, job_folder_setup, job_folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_spec_is_same__each_field),
        WITH_FOLDER(test_spec_is_same__number_of_data_sets),
        WITH_FOLDER(test_spec_is_same__output_does_not_count),
        WITH_FOLDER(test_spec_copy__owns_everything),
        WITH_FOLDER(test_spec_copy__out_of_memory),
        WITH_FOLDER(test_spec_clear_output__clears),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* codec_job.c: every field over the wire and back, and what no struct can hold. */
#include "codec_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"
#include "job_fields.h"
#include "skrull/v1/job.pb-c.h"

#define ARENA_BYTES ((size_t)1 << 20)
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Another value in every field, in range for the struct; `salt` tells data sets apart. */
static void fill_fields(const struct job_field *fields, void *base, uint32_t salt)
{
    static const char *const texts[] = {"a", "b\u00e9", "c-c", "d/d", "e e", "f", "g", "h"};
    uint32_t n = salt;

    for (const struct job_field *field = fields; field->path; field++, n++) {
        if (field->kind == JOB_FIELD_TEXT) {
            job_field_set_text(field, base, texts[n % COUNT(texts)]);
        } else if (field->kind == JOB_FIELD_DOUBLE) {
            job_field_set_double(field, base, n + 0.1);
        } else if (field->kind == JOB_FIELD_WORD) {
            job_field_set_number(field, base, n % field->max + 1);
        } else if (field->kind == JOB_FIELD_U64) {
            job_field_set_number(field, base, UINT64_MAX - n);
        } else {
            job_field_set_number(field, base, UINT32_MAX - n);
        }
    }
}

static void assert_same_fields(const struct job_field *fields, const void *left, const void *right)
{
    for (const struct job_field *field = fields; field->path; field++) {
        print_message("# %s\n", field->path);
        if (field->kind == JOB_FIELD_TEXT) {
            const char *text = job_field_text(field, left);

            if (text) {
                assert_non_null(job_field_text(field, right));
                assert_string_equal(text, job_field_text(field, right));
            } else {
                assert_null(job_field_text(field, right));
            }
        } else if (field->kind == JOB_FIELD_DOUBLE) {
            const double a = job_field_double(field, left), b = job_field_double(field, right);

            assert_memory_equal(&a, &b, sizeof(a));
        } else {
            assert_int_equal(job_field_number(field, left), job_field_number(field, right));
        }
    }
}

static struct skrull_revision_info revisions[] = {{1, 0, 8}, {2, 64, 8}, {3, 1 << 20, UINT32_MAX}};

static struct skrull_job full_job(struct skrull_dataset data[3],
                                  struct skrull_index_info indexes[3])
{
    struct skrull_job job = {.uid = "0123456789abcdef0123456789abcdef",
                             .revision = UINT32_MAX,
                             .n_data = 3,
                             .data = data,
                             .info = {.sequences = 1,
                                      .tokens = UINT64_MAX,
                                      .dropped = 3,
                                      .truncated = 4,
                                      .steps = 5,
                                      .bucket_tokens = 6,
                                      .longest = 7,
                                      .n_indexes = 3,
                                      .indexes = indexes,
                                      .limit = 8,
                                      .n_revisions = COUNT(revisions),
                                      .revisions = revisions}};

    fill_fields(job_fields, &job, 1);
    for (uint32_t i = 0; i < 3; i++) {
        fill_fields(job_data_fields, &data[i], i * 7);
        indexes[i] = (struct skrull_index_info){i, 10 + i, UINT64_MAX - i};
    }
    return job;
}

static void test_codec_job_pack__every_field_comes_back(void **state)
{
    struct skrull_dataset data[3];
    struct skrull_index_info indexes[3];
    const struct skrull_job job = full_job(data, indexes);
    struct arena *arena = arena_new(ARENA_BYTES);
    struct skrull_error err = {0};
    struct skrull_job *back;
    uint8_t *bytes;
    size_t len;

    (void)state;
    assert_int_equal(codec_job_pack(arena, &job, &bytes, &len, &err), 0);
    assert_int_equal(codec_job_unpack(arena, bytes, len, &back, &err), 0);
    assert_same_fields(job_fields, &job, back);
    assert_int_equal(back->n_data, 3);
    assert_int_equal(back->info.n_indexes, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_same_fields(job_data_fields, &data[i], &back->data[i]);
        assert_int_equal(back->info.indexes[i].count, indexes[i].count);
        assert_int_equal(back->info.indexes[i].tokens, indexes[i].tokens);
        assert_int_equal(back->info.indexes[i].payload_hash, indexes[i].payload_hash);
    }
    assert_string_equal(back->uid, job.uid);
    assert_int_equal(back->revision, job.revision);
    assert_int_equal(back->info.sequences, 1);
    assert_int_equal(back->info.tokens, UINT64_MAX);
    assert_int_equal(back->info.dropped, 3);
    assert_int_equal(back->info.truncated, 4);
    assert_int_equal(back->info.steps, 5);
    assert_int_equal(back->info.bucket_tokens, 6);
    assert_int_equal(back->info.longest, 7);
    assert_int_equal(back->info.limit, 8);
    assert_int_equal(back->info.n_revisions, COUNT(revisions));
    for (size_t i = 0; i < COUNT(revisions); i++) {
        assert_int_equal(back->info.revisions[i].revision, revisions[i].revision);
        assert_int_equal(back->info.revisions[i].first_step, revisions[i].first_step);
        assert_int_equal(back->info.revisions[i].global, revisions[i].global);
    }
    arena_free(arena);
}

static void test_codec_job_pack__empty_job(void **state)
{
    const struct skrull_job job = {0};
    struct arena *arena = arena_new(ARENA_BYTES);
    struct skrull_error err = {0};
    struct skrull_job *back;
    uint8_t *bytes;
    size_t len;

    (void)state;
    assert_int_equal(codec_job_pack(arena, &job, &bytes, &len, &err), 0);
    assert_int_equal(len, 0);
    assert_int_equal(codec_job_unpack(arena, bytes, len, &back, &err), 0);
    assert_same_fields(job_fields, &job, back);
    assert_int_equal(back->n_data, 0);
    assert_null(back->uid);
    assert_int_equal(back->info.n_indexes, 0);
    arena_free(arena);
}

/* The descriptor that a path names, by hand. */
static const ProtobufCFieldDescriptor *wire_of(const ProtobufCMessageDescriptor *descriptor,
                                               const char *path)
{
    const ProtobufCFieldDescriptor *section;
    const char *dot = strchr(path, '.');
    char name[JOB_PATH_SIZE];

    if (!dot) {
        return protobuf_c_message_descriptor_get_field_by_name(descriptor, path);
    }
    (void)snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
    section = protobuf_c_message_descriptor_get_field_by_name(descriptor, name);
    return section ? wire_of(section->descriptor, dot + 1) : NULL;
}

static void check_schema(const ProtobufCMessageDescriptor *descriptor,
                         const struct job_field *field)
{
    const ProtobufCFieldDescriptor *wire = wire_of(descriptor, field->path);
    const ProtobufCEnumDescriptor *words;

    print_message("# %s\n", field->path);
    assert_non_null(wire);
    switch (field->kind) {
    case JOB_FIELD_U32:
        assert_true(wire->type == PROTOBUF_C_TYPE_UINT32 || wire->type == PROTOBUF_C_TYPE_UINT64);
        break;
    case JOB_FIELD_U64:
        assert_int_equal(wire->type, PROTOBUF_C_TYPE_UINT64);
        break;
    case JOB_FIELD_DOUBLE:
        assert_int_equal(wire->type, PROTOBUF_C_TYPE_DOUBLE);
        break;
    case JOB_FIELD_TEXT:
        assert_int_equal(wire->type, PROTOBUF_C_TYPE_STRING);
        break;
    case JOB_FIELD_WORD:
        assert_int_equal(wire->type, PROTOBUF_C_TYPE_ENUM);
        words = wire->descriptor;
        assert_int_equal(words->n_values, field->max + 1);
        for (unsigned i = 1; i < words->n_values; i++) {
            assert_int_equal(words->values[i].value, i);
            assert_string_equal(words->values[i].name, field->words[i - 1].enum_name);
        }
        break;
    }
}

/* The table and the schema name the same fields, words and numbers. */
static void test_job_fields__agree_with_the_schema(void **state)
{
    static const char *const sections[] = {"model", "training", "hardware", "parallel", "batch"};
    unsigned n_table = 0, n_wire = skrull__v1__job__descriptor.n_fields;

    (void)state;
    for (const struct job_field *field = job_fields; field->path; field++, n_table++) {
        check_schema(&skrull__v1__job__descriptor, field);
    }
    for (size_t i = 0; i < COUNT(sections); i++) {
        const ProtobufCFieldDescriptor *section =
            wire_of(&skrull__v1__job__descriptor, sections[i]);

        n_wire += ((const ProtobufCMessageDescriptor *)section->descriptor)->n_fields;
    }
    assert_int_equal(n_table, n_wire - COUNT(sections) - 4); /* data, uid, revision, info */
    n_table = 0;
    for (const struct job_field *field = job_data_fields; field->path; field++, n_table++) {
        check_schema(&skrull__v1__dataset__descriptor, field);
    }
    assert_int_equal(n_table, skrull__v1__dataset__descriptor.n_fields);
}

/* A number that the struct's member cannot hold is refused, not cut. */
static void test_codec_job_decode__number_too_large(void **state)
{
    (void)state;
    for (const struct job_field *field = job_fields; field->path; field++) {
        const ProtobufCFieldDescriptor *wire = wire_of(&skrull__v1__job__descriptor, field->path);
        const uint64_t large = (uint64_t)1 << 32;
        struct arena *arena = arena_new(ARENA_BYTES);
        struct skrull_error err = {0};
        struct skrull_job job = {0}, *back;
        Skrull__V1__Job *message;
        char *owner;

        if (field->kind == JOB_FIELD_U32 && wire->type == PROTOBUF_C_TYPE_UINT64) {
            print_message("# %s\n", field->path);
            job_field_set_number(field, &job, 1); /* makes its section */
            assert_int_equal(codec_job_encode(arena, &job, &message, &err), 0);
            memcpy(&owner,
                   (char *)message + wire_of(&skrull__v1__job__descriptor,
                                             strncmp(field->path, "batch.", 6) == 0 ? "batch"
                                             : strncmp(field->path, "parallel.", 9) == 0
                                                 ? "parallel"
                                                 : "training")
                                         ->offset,
                   sizeof(owner));
            memcpy(owner + wire->offset, &large, sizeof(large));
            assert_int_equal(codec_job_decode(arena, message, &back, &err),
                             SKRULL_ERR_INVALID_ARGUMENT);
            assert_int_equal(strncmp(err.message, field->path, strlen(field->path)), 0);
            assert_non_null(strstr(err.message, ": 4294967296 is out of range, "));
        }
        arena_free(arena);
    }
}

static void test_codec_job_decode__unknown_enum_number(void **state)
{
    Skrull__V1__Job job;
    Skrull__V1__Batch batch;
    Skrull__V1__Dataset first, second;
    Skrull__V1__Dataset *data[] = {&first, &second};
    struct arena *arena = arena_new(ARENA_BYTES);
    struct skrull_error err = {0};
    struct skrull_job *back;
    const int wrong = 9, negative = -1;

    (void)state;
    skrull__v1__job__init(&job);
    skrull__v1__batch__init(&batch);
    skrull__v1__dataset__init(&first);
    skrull__v1__dataset__init(&second);
    job.batch = &batch;
    job.n_data = 2;
    job.data = data;
    assert_int_equal(codec_job_decode(arena, &job, &back, &err), 0);
    memcpy(&second.over_length, &wrong, sizeof(wrong));
    assert_int_equal(codec_job_decode(arena, &job, &back, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message,
                        "data[1].over_length: the enum has no such number, 0 to 3 are allowed");
    memcpy(&batch.shard, &negative, sizeof(negative));
    assert_int_equal(codec_job_decode(arena, &job, &back, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message,
                        "batch.shard: the enum has no such number, 0 to 2 are allowed");
    batch.shard = SKRULL__V1__SHARD__SHARD_ZIGZAG;
    memcpy(&job.order, &wrong, sizeof(wrong));
    assert_int_equal(codec_job_decode(arena, &job, &back, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "order: the enum has no such number, 0 to 3 are allowed");
    arena_free(arena);
}

static void test_codec_job_decode__odd_info_is_none(void **state)
{
    Skrull__V1__Job job;
    Skrull__V1__JobInfo info;
    Skrull__V1__IndexInfo entry;
    Skrull__V1__IndexInfo *entries[] = {&entry, &entry};
    Skrull__V1__Dataset dataset;
    Skrull__V1__Dataset *data[] = {&dataset};
    struct arena *arena = arena_new(ARENA_BYTES);
    struct skrull_error err = {0};
    struct skrull_job *back;

    (void)state;
    skrull__v1__job__init(&job);
    skrull__v1__job_info__init(&info);
    skrull__v1__index_info__init(&entry);
    skrull__v1__dataset__init(&dataset);
    job.info = &info;
    job.n_data = 1;
    job.data = data;
    info.n_indexes = 2;
    info.indexes = entries;
    assert_int_equal(codec_job_decode(arena, &job, &back, &err), 0);
    assert_int_equal(back->info.n_indexes, 0);
    info.n_indexes = 1;
    assert_int_equal(codec_job_decode(arena, &job, &back, &err), 0);
    assert_int_equal(back->info.n_indexes, 1);
    arena_free(arena);
}

static void test_codec_job_decode__odd_revisions_are_none(void **state)
{
    static Skrull__V1__RevisionInfo *many[JOB_MAX_REVISIONS + 1];
    Skrull__V1__Job job;
    Skrull__V1__JobInfo info;
    Skrull__V1__RevisionInfo entry;
    struct arena *arena = arena_new(ARENA_BYTES);
    struct skrull_error err = {0};
    struct skrull_job *back;

    (void)state;
    skrull__v1__job__init(&job);
    skrull__v1__job_info__init(&info);
    skrull__v1__revision_info__init(&entry);
    for (size_t i = 0; i <= JOB_MAX_REVISIONS; i++) {
        many[i] = &entry;
    }
    job.info = &info;
    info.n_revisions = JOB_MAX_REVISIONS;
    info.revisions = many;
    assert_int_equal(codec_job_decode(arena, &job, &back, &err), 0);
    assert_int_equal(back->info.n_revisions, JOB_MAX_REVISIONS);
    info.n_revisions++;
    assert_int_equal(codec_job_decode(arena, &job, &back, &err), 0);
    assert_int_equal(back->info.n_revisions, 0);
    info.n_revisions = 1;
    entry.global = (uint64_t)UINT32_MAX + 1;
    assert_int_equal(codec_job_decode(arena, &job, &back, &err), 0);
    assert_int_equal(back->info.n_revisions, 0);
    arena_free(arena);
}

static void test_codec_job_decode__too_many_data_sets(void **state)
{
    static Skrull__V1__Dataset *data[JOB_MAX_DATA + 1];
    Skrull__V1__Dataset dataset;
    Skrull__V1__Job job;
    struct arena *arena = arena_new(ARENA_BYTES);
    struct skrull_error err = {0};
    struct skrull_job *back;

    (void)state;
    skrull__v1__dataset__init(&dataset);
    skrull__v1__job__init(&job);
    for (size_t i = 0; i < COUNT(data); i++) {
        data[i] = &dataset;
    }
    job.data = data;
    job.n_data = COUNT(data);
    assert_int_equal(codec_job_decode(arena, &job, &back, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.message, "data: 1025 data sets are too many, at most 1024 are allowed");
    job.n_data--;
    assert_int_equal(codec_job_decode(arena, &job, &back, &err), 0);
    assert_int_equal(back->n_data, JOB_MAX_DATA);
    arena_free(arena);
}

static void test_codec_job_decode__copies_strings(void **state)
{
    char name[] = "before";
    Skrull__V1__Job job;
    struct arena *arena = arena_new(ARENA_BYTES);
    struct skrull_error err = {0};
    struct skrull_job *back;

    (void)state;
    skrull__v1__job__init(&job);
    job.name = name;
    assert_int_equal(codec_job_decode(arena, &job, &back, &err), 0);
    name[0] = 'x';
    assert_string_equal(back->name, "before");
    arena_free(arena);
}

static void test_codec_job_unpack__garbage(void **state)
{
    static const uint8_t bytes[] = {0xff, 0xff, 0xff};
    static const uint8_t cut[] = {0x0a, 0x05, 'a'};
    struct arena *arena = arena_new(ARENA_BYTES);
    struct skrull_error err = {0};
    struct skrull_job *back;

    (void)state;
    assert_int_equal(codec_job_unpack(arena, bytes, sizeof(bytes), &back, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_int_equal(codec_job_unpack(arena, cut, sizeof(cut), &back, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    arena_free(arena);
}

/* With every budget it either works or says that memory is short. */
static void test_codec_job__without_memory(void **state)
{
    struct skrull_dataset data[3];
    struct skrull_index_info indexes[3];
    const struct skrull_job job = full_job(data, indexes);
    struct skrull_error err = {0};
    struct skrull_job *back;
    size_t budget = 0, len;
    uint8_t *bytes;
    int rc;

    (void)state;
    do {
        struct arena *arena = arena_new(budget);

        rc = codec_job_pack(arena, &job, &bytes, &len, &err);
        if (!rc) {
            rc = codec_job_unpack(arena, bytes, len, &back, &err);
        }
        assert_true(rc == 0 || rc == SKRULL_ERR_RESOURCE_EXHAUSTED);
        arena_free(arena);
        budget += 16;
    } while (rc && budget < ARENA_BYTES);
    assert_int_equal(rc, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codec_job_pack__every_field_comes_back),
        cmocka_unit_test(test_codec_job_pack__empty_job),
        cmocka_unit_test(test_job_fields__agree_with_the_schema),
        cmocka_unit_test(test_codec_job_decode__number_too_large),
        cmocka_unit_test(test_codec_job_decode__unknown_enum_number),
        cmocka_unit_test(test_codec_job_decode__odd_info_is_none),
        cmocka_unit_test(test_codec_job_decode__odd_revisions_are_none),
        cmocka_unit_test(test_codec_job_decode__too_many_data_sets),
        cmocka_unit_test(test_codec_job_decode__copies_strings),
        cmocka_unit_test(test_codec_job_unpack__garbage),
        cmocka_unit_test(test_codec_job__without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

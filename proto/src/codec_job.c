/*
 * Walks the table of job_fields.h and protobuf-c's descriptors side by side: the path "batch.align"
 * is the field `align` of the submessage `batch`, so no field is written down twice. Only what the
 * table leaves out, the output-only fields, is named here. Pure functions over the caller's arena.
 */
#include "codec_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "codec_wire.h"
#include "job_fields.h"
#include "skrull/v1/job.pb-c.h"

/* The numbers of JobInfo and of IndexInfo. */
#define INFO_NUMBERS(X)                                                                            \
    X(sequences)                                                                                   \
    X(tokens)                                                                                      \
    X(dropped)                                                                                     \
    X(truncated)                                                                                   \
    X(steps)                                                                                       \
    X(bucket_tokens)                                                                               \
    X(longest)                                                                                     \
    X(limit)
#define INDEX_NUMBERS(X)                                                                           \
    X(count)                                                                                       \
    X(tokens)                                                                                      \
    X(payload_hash)

static int out_of_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                            "the job takes more memory than is allowed");
}

/* A message of this kind with its defaults, in the arena; NULL: out of memory. */
static ProtobufCMessage *new_message(struct arena *arena,
                                     const ProtobufCMessageDescriptor *descriptor)
{
    ProtobufCMessage *message = arena_alloc(arena, 1, descriptor->sizeof_message);

    if (message) {
        protobuf_c_message_init(descriptor, message);
    }
    return message;
}

/* Generated strings are not const, yet nobody writes to them. */
static char *borrow(const char *text)
{
    char *borrowed;

    memcpy(&borrowed, &text, sizeof(borrowed));
    return borrowed;
}

/* A member of a message that the descriptor describes. */
static const char *member_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *wire)
{
    return (const char *)message + wire->offset;
}

/* The descriptor of a field's submessage, "batch" of "batch.align"; NULL: it has none. *ret_name is
 * the field's own name. */
static const ProtobufCFieldDescriptor *section_of(const ProtobufCMessageDescriptor *descriptor,
                                                  const char *path, const char **ret_name)
{
    char section[JOB_PATH_SIZE];
    const char *dot = strchr(path, '.');

    *ret_name = dot ? dot + 1 : path;
    if (!dot) {
        return NULL;
    }
    (void)snprintf(section, sizeof(section), "%.*s", (int)(dot - path), path);
    return protobuf_c_message_descriptor_get_field_by_name(descriptor, section);
}

/* Whether a field of the job is zero, and so not sent. */
static bool is_zero(const struct job_field *field, const void *base)
{
    const char *text;

    if (field->kind == JOB_FIELD_TEXT) {
        text = job_field_text(field, base);
        return !text || !*text;
    }
    if (field->kind == JOB_FIELD_DOUBLE) {
        const double value = job_field_double(field, base), zero = 0;

        return memcmp(&value, &zero, sizeof(zero)) == 0;
    }
    return job_field_number(field, base) == 0;
}

/* The message that holds a field, made where it is missing; NULL: out of memory. */
static ProtobufCMessage *owner_for_encode(struct arena *arena, ProtobufCMessage *message,
                                          const char *path, const char **ret_name)
{
    const ProtobufCFieldDescriptor *section = section_of(message->descriptor, path, ret_name);
    ProtobufCMessage *owner;

    if (!section) {
        return message;
    }
    memcpy(&owner, member_of(message, section), sizeof(owner));
    if (!owner) {
        owner = new_message(arena, section->descriptor);
        memcpy((char *)message + section->offset, &owner, sizeof(owner));
    }
    return owner;
}

/* Writes one value as the wire has it. */
static void encode_value(const struct job_field *field, const void *base,
                         const ProtobufCFieldDescriptor *wire, ProtobufCMessage *owner)
{
    char *member = (char *)owner + wire->offset;
    const char *text;
    uint64_t wide;
    uint32_t narrow;
    double real;

    if (field->kind == JOB_FIELD_TEXT) {
        text = job_field_text(field, base);
        memcpy(member, &text, sizeof(text));
    } else if (field->kind == JOB_FIELD_DOUBLE) {
        real = job_field_double(field, base);
        memcpy(member, &real, sizeof(real));
    } else if (wire->type == PROTOBUF_C_TYPE_UINT64) {
        wide = job_field_number(field, base);
        memcpy(member, &wide, sizeof(wide));
    } else { /* uint32, enum */
        narrow = (uint32_t)job_field_number(field, base);
        memcpy(member, &narrow, sizeof(narrow));
    }
}

static int encode_fields(struct arena *arena, const struct job_field *fields, const void *base,
                         ProtobufCMessage *message, struct skrull_error *err)
{
    for (const struct job_field *field = fields; field->path; field++) {
        ProtobufCMessage *owner;
        const char *name;

        if (is_zero(field, base)) {
            continue;
        }
        owner = owner_for_encode(arena, message, field->path, &name);
        if (!owner) {
            return out_of_memory(err);
        }
        encode_value(field, base,
                     protobuf_c_message_descriptor_get_field_by_name(owner->descriptor, name),
                     owner);
    }
    return 0;
}

static int encode_data(struct arena *arena, const struct skrull_job *job, Skrull__V1__Job *message,
                       struct skrull_error *err)
{
    int rc = 0;

    if (job->n_data == 0) {
        return 0;
    }
    message->data = ARENA_ARRAY(arena, Skrull__V1__Dataset *, job->n_data);
    if (!message->data) {
        return out_of_memory(err);
    }
    message->n_data = job->n_data;
    for (uint32_t i = 0; i < job->n_data && !rc; i++) {
        ProtobufCMessage *dataset = new_message(arena, &skrull__v1__dataset__descriptor);

        if (!dataset) {
            return out_of_memory(err);
        }
        message->data[i] = (Skrull__V1__Dataset *)dataset;
        rc = encode_fields(arena, job_data_fields, &job->data[i], dataset, err);
    }
    return rc;
}

static bool is_info_empty(const struct skrull_job_info *info)
{
    uint64_t any = info->n_indexes | info->n_revisions;

#define X(name) any |= info->name;
    INFO_NUMBERS(X)
#undef X
    return any == 0;
}

static int encode_revisions(struct arena *arena, const struct skrull_job_info *info,
                            Skrull__V1__JobInfo *message, struct skrull_error *err)
{
    message->revisions = ARENA_ARRAY(arena, Skrull__V1__RevisionInfo *, info->n_revisions);
    if (!message->revisions) {
        return out_of_memory(err);
    }
    for (uint32_t i = 0; i < info->n_revisions; i++) {
        ProtobufCMessage *base = new_message(arena, &skrull__v1__revision_info__descriptor);
        Skrull__V1__RevisionInfo *entry = (Skrull__V1__RevisionInfo *)base;

        if (!base) {
            return out_of_memory(err);
        }
        entry->revision = info->revisions[i].revision;
        entry->first_step = info->revisions[i].first_step;
        entry->global = info->revisions[i].global;
        message->revisions[message->n_revisions++] = entry;
    }
    return 0;
}

static int encode_info(struct arena *arena, const struct skrull_job_info *info,
                       Skrull__V1__Job *message, struct skrull_error *err)
{
    Skrull__V1__JobInfo *ret;

    if (is_info_empty(info)) {
        return 0;
    }
    ret = (Skrull__V1__JobInfo *)new_message(arena, &skrull__v1__job_info__descriptor);
    if (!ret) {
        return out_of_memory(err);
    }
    message->info = ret;
#define X(name) ret->name = info->name;
    INFO_NUMBERS(X)
#undef X
    ret->indexes = ARENA_ARRAY(arena, Skrull__V1__IndexInfo *, info->n_indexes);
    if (!ret->indexes) {
        return out_of_memory(err);
    }
    ret->n_indexes = info->n_indexes;
    for (uint32_t i = 0; i < info->n_indexes; i++) {
        ProtobufCMessage *entry = new_message(arena, &skrull__v1__index_info__descriptor);

        if (!entry) {
            return out_of_memory(err);
        }
        ret->indexes[i] = (Skrull__V1__IndexInfo *)entry;
#define X(name) ret->indexes[i]->name = info->indexes[i].name;
        INDEX_NUMBERS(X)
#undef X
    }
    return encode_revisions(arena, info, ret, err);
}

int codec_job_encode(struct arena *arena, const struct skrull_job *job,
                     Skrull__V1__Job **ret_message, struct skrull_error *err)
{
    ProtobufCMessage *base = new_message(arena, &skrull__v1__job__descriptor);
    Skrull__V1__Job *message = (Skrull__V1__Job *)base;
    int rc;

    if (!base) {
        return out_of_memory(err);
    }
    rc = encode_fields(arena, job_fields, job, base, err);
    if (!rc) {
        rc = encode_data(arena, job, message, err);
    }
    if (!rc) {
        rc = encode_info(arena, &job->info, message, err);
    }
    if (rc) {
        return rc;
    }
    message->revision = job->revision;
    if (job->uid) {
        message->uid = borrow(job->uid);
    }
    *ret_message = message;
    return 0;
}

/* A copy of a string in the arena, NULL where it is empty. */
static int copy_text(struct arena *arena, const char *text, const char **ret,
                     struct skrull_error *err)
{
    const char *copy = NULL;

    if (text && *text) {
        copy = arena_strdup(arena, text);
        if (!copy) {
            return out_of_memory(err);
        }
    }
    *ret = copy;
    return 0;
}

/* A number of the wire that is not zero, as the struct's member can hold it. */
static int decode_number(const struct job_field *field, const char *path, uint64_t value,
                         void *base, struct skrull_error *err)
{
    const bool fits = field->kind == JOB_FIELD_U32    ? value <= UINT32_MAX
                      : field->kind == JOB_FIELD_WORD ? value <= field->max
                                                      : true;
    int rc = fits ? 0 : job_field_check_number(field, path, value, err);

    if (!rc) {
        job_field_set_number(field, base, value);
    }
    return rc;
}

/* Reads one value as the wire has it. */
static int decode_value(struct arena *arena, const struct job_field *field, const char *path,
                        const char *member, const ProtobufCFieldDescriptor *wire, void *base,
                        struct skrull_error *err)
{
    const char *text;
    uint64_t wide;
    uint32_t narrow;
    double real;
    int rc;

    if (field->kind == JOB_FIELD_TEXT) {
        memcpy(&text, member, sizeof(text));
        rc = codec_wire_check_text(path, text ? text : "", field->max, err);
        if (!rc) {
            rc = copy_text(arena, text, &text, err);
        }
        if (!rc) {
            job_field_set_text(field, base, text);
        }
        return rc;
    }
    if (field->kind == JOB_FIELD_DOUBLE) {
        memcpy(&real, member, sizeof(real));
        job_field_set_double(field, base, real);
        return 0;
    }
    if (wire->type == PROTOBUF_C_TYPE_UINT64) {
        memcpy(&wide, member, sizeof(wide));
    } else {
        memcpy(&narrow, member, sizeof(narrow));
        wide = narrow;
    }
    return wide ? decode_number(field, path, wide, base, err) : 0;
}

/* All fields of the job, or of one data set; `prefix` stands before the path in messages. */
static int decode_fields(struct arena *arena, const struct job_field *fields,
                         const ProtobufCMessage *message, const char *prefix, void *base,
                         struct skrull_error *err)
{
    char path[JOB_PATH_SIZE];
    int rc = 0;

    for (const struct job_field *field = fields; field->path && !rc; field++) {
        const ProtobufCMessage *owner = message;
        const ProtobufCFieldDescriptor *section, *wire;
        const char *name;

        section = section_of(message->descriptor, field->path, &name);
        if (section) {
            memcpy(&owner, member_of(message, section), sizeof(owner));
        }
        if (!owner) {
            continue;
        }
        wire = protobuf_c_message_descriptor_get_field_by_name(owner->descriptor, name);
        (void)snprintf(path, sizeof(path), "%s%s", prefix, field->path);
        rc = decode_value(arena, field, path, member_of(owner, wire), wire, base, err);
    }
    return rc;
}

static int decode_data(struct arena *arena, const Skrull__V1__Job *message, struct skrull_job *job,
                       struct skrull_error *err)
{
    char prefix[JOB_PATH_SIZE];
    int rc = 0;

    if (message->n_data > JOB_MAX_DATA) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "data: %zu data sets are too many, at most %d are allowed",
                                message->n_data, JOB_MAX_DATA);
    }
    job->data = ARENA_ARRAY(arena, struct skrull_dataset, message->n_data);
    if (!job->data) {
        return out_of_memory(err);
    }
    job->n_data = (uint32_t)message->n_data;
    for (uint32_t i = 0; i < job->n_data && !rc; i++) {
        (void)snprintf(prefix, sizeof(prefix), "data[%" PRIu32 "].", i);
        rc = decode_fields(arena, job_data_fields, &message->data[i]->base, prefix, &job->data[i],
                           err);
    }
    return rc;
}

/* More than a job can have are none, as are batches that no number here can hold. */
static int decode_revisions(struct arena *arena, const Skrull__V1__JobInfo *message,
                            struct skrull_job_info *info, struct skrull_error *err)
{
    if (message->n_revisions > JOB_MAX_REVISIONS) {
        return 0;
    }
    info->revisions = ARENA_ARRAY(arena, struct skrull_revision_info, message->n_revisions);
    if (!info->revisions) {
        return out_of_memory(err);
    }
    for (size_t i = 0; i < message->n_revisions; i++) {
        const Skrull__V1__RevisionInfo *entry = message->revisions[i];

        if (entry->global > UINT32_MAX) {
            return 0;
        }
        info->revisions[i] = (struct skrull_revision_info){.revision = entry->revision,
                                                           .first_step = entry->first_step,
                                                           .global = (uint32_t)entry->global};
    }
    info->n_revisions = (uint32_t)message->n_revisions;
    return 0;
}

/* Output only, so that a caller's nonsense is ignored: a list of another length than `data` is
 * none. */
static int decode_info(struct arena *arena, const Skrull__V1__JobInfo *message, uint32_t n_data,
                       struct skrull_job_info *info, struct skrull_error *err)
{
    if (!message) {
        return 0;
    }
#define X(name) info->name = message->name;
    INFO_NUMBERS(X)
#undef X
    if (message->n_indexes == 0 || message->n_indexes != n_data) {
        return decode_revisions(arena, message, info, err);
    }
    info->indexes = ARENA_ARRAY(arena, struct skrull_index_info, n_data);
    if (!info->indexes) {
        return out_of_memory(err);
    }
    info->n_indexes = n_data;
    for (uint32_t i = 0; i < n_data; i++) {
#define X(name) info->indexes[i].name = message->indexes[i]->name;
        INDEX_NUMBERS(X)
#undef X
    }
    return decode_revisions(arena, message, info, err);
}

int codec_job_decode(struct arena *arena, const Skrull__V1__Job *message,
                     struct skrull_job **ret_job, struct skrull_error *err)
{
    struct skrull_job *job = ARENA_NEW(arena, struct skrull_job);
    int rc;

    if (!job) {
        return out_of_memory(err);
    }
    rc = decode_fields(arena, job_fields, &message->base, "", job, err);
    if (!rc) {
        rc = decode_data(arena, message, job, err);
    }
    if (!rc) {
        rc = decode_info(arena, message->info, job->n_data, &job->info, err);
    }
    if (!rc) {
        rc = copy_text(arena, message->uid, &job->uid, err);
    }
    if (rc) {
        return rc;
    }
    job->revision = message->revision;
    *ret_job = job;
    return 0;
}

int codec_job_pack(struct arena *arena, const struct skrull_job *job, uint8_t **ret_bytes,
                   size_t *ret_len, struct skrull_error *err)
{
    Skrull__V1__Job *message;
    uint8_t *bytes;
    size_t len;
    int rc = codec_job_encode(arena, job, &message, err);

    if (rc) {
        return rc;
    }
    len = protobuf_c_message_get_packed_size(&message->base);
    bytes = arena_alloc(arena, len, 1);
    if (!bytes) {
        return out_of_memory(err);
    }
    *ret_len = protobuf_c_message_pack(&message->base, bytes);
    *ret_bytes = bytes;
    return 0;
}

int codec_job_unpack(struct arena *arena, const uint8_t *bytes, size_t len,
                     struct skrull_job **ret_job, struct skrull_error *err)
{
    ProtobufCMessage *message;
    int rc = codec_wire_decode(arena, &skrull__v1__job__descriptor, bytes, len, &message, err);

    return rc ? rc : codec_job_decode(arena, (const Skrull__V1__Job *)message, ret_job, err);
}

/*
 * google.rpc.Status to and from bytes.
 *
 * The field of a BadRequest is read off the message: errors about a field begin with its path and a
 * colon ("batch.align: ...", "reports[3]: digest: ..."), relative to the request or to its job. The
 * path is held against the method's descriptor, so that a file's name is not taken for one. Any
 * thread, one arena each.
 */
#include "codec_status.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "skrull/v1/planner.pb-c.h"

#include "arena.h"
#include "codec_wire.h"

#define DOMAIN "skrull"
#define TYPE_PREFIX "type.googleapis.com/"
#define MAX_FIELD 200 /* bytes of a field's path */
#define MAX_DETAILS 3

static int no_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "status: out of memory");
}

/* --- the field that a message names --- */

/* Bytes of a path at the start of `text` that a colon follows; 0: none. */
static size_t path_len(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_.[]");

    return strncmp(text + len, ": ", 2) == 0 ? len : 0;
}

/* The field that a path names from `message` on, or NULL. */
static const ProtobufCFieldDescriptor *resolve(const ProtobufCMessageDescriptor *message,
                                               const char *path, size_t len)
{
    const ProtobufCFieldDescriptor *field = NULL;
    char name[64];

    while (len > 0) {
        size_t part = strcspn(path, ".:"), name_len = strcspn(path, ".:[");

        if (!message || name_len >= sizeof(name) || part + 1 == len) {
            return NULL;
        }
        memcpy(name, path, name_len);
        name[name_len] = '\0';
        field = protobuf_c_message_descriptor_get_field_by_name(message, name);
        if (!field) {
            return NULL;
        }
        message = field->type == PROTOBUF_C_TYPE_MESSAGE ? field->descriptor : NULL;
        len = part < len ? len - part - 1 : 0;
        path += part + 1;
    }
    return field;
}

/* Appends the path at the start of `text`, and those behind it, as far as they are fields. */
static bool append_paths(const ProtobufCMessageDescriptor *message, const char *text,
                         char field[MAX_FIELD])
{
    size_t len = path_len(text), used = strlen(field);
    const ProtobufCFieldDescriptor *found = resolve(message, text, len);

    if (!found || used + len + 2 > MAX_FIELD) {
        return false;
    }
    (void)snprintf(field + used, MAX_FIELD - used, "%s%.*s", used > 0 ? "." : "", (int)len, text);
    if (found->type == PROTOBUF_C_TYPE_MESSAGE) {
        (void)append_paths(found->descriptor, text + len + 2, field);
    }
    return true;
}

/* Path of the field that an error's message begins with. */
static bool find_field(const char *method, const char *text, char ret_field[MAX_FIELD])
{
    const ProtobufCMethodDescriptor *found = NULL;
    const ProtobufCFieldDescriptor *job;
    size_t len;

    ret_field[0] = '\0';
    if (method) {
        found = protobuf_c_service_descriptor_get_method_by_name(
            &skrull__v1__planner_service__descriptor, method);
    }
    if (!found) {
        return false;
    }
    len = strlen(found->input->short_name); /* faults of the wire name the message first */
    if (strncmp(text, found->input->short_name, len) == 0 && text[len] == '.') {
        text += len + 1;
    }
    if (append_paths(found->input, text, ret_field)) {
        return true;
    }
    job = protobuf_c_message_descriptor_get_field_by_name(found->input, "job");
    if (!job || job->type != PROTOBUF_C_TYPE_MESSAGE) {
        return false;
    }
    (void)snprintf(ret_field, MAX_FIELD, "job");
    return append_paths(job->descriptor, text, ret_field);
}

/* --- packing --- */

static int add_detail(struct arena *arena, Google__Rpc__Status *status,
                      const ProtobufCMessage *detail, struct skrull_error *err)
{
    Google__Protobuf__Any *any = ARENA_NEW(arena, Google__Protobuf__Any);
    const char *name = detail->descriptor->name;
    size_t size = sizeof(TYPE_PREFIX) + strlen(name);
    char *url = arena_alloc(arena, size, 1);

    if (!any || !url) {
        return no_memory(err);
    }
    google__protobuf__any__init(any);
    (void)snprintf(url, size, TYPE_PREFIX "%s", name);
    any->type_url = url;
    status->details[status->n_details++] = any;
    return codec_wire_encode(arena, detail, &any->value.data, &any->value.len, err);
}

static const char *reason_of(const struct skrull_error *why, bool has_field)
{
    if (why->reason != SKRULL_REASON_NONE) {
        return skrull_reason_text(why->reason);
    }
    if (has_field && why->code == SKRULL_ERR_INVALID_ARGUMENT) {
        return skrull_reason_text(SKRULL_REASON_FIELD_INVALID);
    }
    switch (why->code) {
#define X(name, status, text)                                                                      \
    case -(status):                                                                                \
        return #name;
#include "error.def"
#undef X
    default:
        return "INTERNAL";
    }
}

static int add_info(struct arena *arena, Google__Rpc__Status *status,
                    const struct skrull_error *why, const char *method, bool has_field,
                    struct skrull_error *err)
{
    Google__Rpc__ErrorInfo info;
    Google__Rpc__ErrorInfo__MetadataEntry entries[2], *list[2] = {&entries[0], &entries[1]};
    char limit[24];

    google__rpc__error_info__init(&info);
    info.reason = codec_wire_borrow(reason_of(why, has_field));
    info.domain = codec_wire_borrow(DOMAIN);
    info.metadata = list;
    if (method) {
        google__rpc__error_info__metadata_entry__init(list[info.n_metadata]);
        list[info.n_metadata]->key = codec_wire_borrow("method");
        list[info.n_metadata]->value = codec_wire_borrow(method);
        info.n_metadata++;
    }
    if (why->limit > 0) {
        (void)snprintf(limit, sizeof(limit), "%llu", (unsigned long long)why->limit);
        google__rpc__error_info__metadata_entry__init(list[info.n_metadata]);
        list[info.n_metadata]->key = codec_wire_borrow("limit");
        list[info.n_metadata]->value = limit;
        info.n_metadata++;
    }
    return add_detail(arena, status, &info.base, err);
}

static int add_retry(struct arena *arena, Google__Rpc__Status *status, int64_t retry_ms,
                     struct skrull_error *err)
{
    Google__Rpc__RetryInfo retry;
    Google__Protobuf__Duration delay;

    google__rpc__retry_info__init(&retry);
    google__protobuf__duration__init(&delay);
    delay.seconds = retry_ms / 1000;
    delay.nanos = (int32_t)(retry_ms % 1000) * 1000000;
    retry.retry_delay = &delay;
    return add_detail(arena, status, &retry.base, err);
}

static int add_field(struct arena *arena, Google__Rpc__Status *status, char *field, char *message,
                     struct skrull_error *err)
{
    Google__Rpc__BadRequest bad;
    Google__Rpc__BadRequest__FieldViolation fault, *faults[1] = {&fault};

    google__rpc__bad_request__init(&bad);
    google__rpc__bad_request__field_violation__init(&fault);
    fault.field = field;
    fault.description = message;
    bad.field_violations = faults;
    bad.n_field_violations = 1;
    return add_detail(arena, status, &bad.base, err);
}

/* Messages hold the client's bytes here and there, and are cut wherever they are too long. */
static char *clean(struct arena *arena, const char *message)
{
    char *text = arena_strndup(arena, message, strnlen(message, SKRULL_ERROR_MESSAGE_SIZE - 1));

    if (text) {
        codec_wire_clean_text(text);
    }
    return text;
}

int codec_status_pack(struct arena *arena, const struct skrull_error *why,
                      const struct rpc_status *status, struct rpc_bytes *ret,
                      struct skrull_error *err)
{
    char field[MAX_FIELD];
    bool has_field = find_field(status->method, why->message, field);
    Google__Protobuf__Any *details[MAX_DETAILS];
    Google__Rpc__Status message;
    uint8_t *bytes;
    int r;

    google__rpc__status__init(&message);
    message.code = status->code;
    message.message = clean(arena, why->message);
    message.details = details;
    if (!message.message) {
        return no_memory(err);
    }
    r = add_info(arena, &message, why, status->method, has_field, err);
    if (!r && status->retry_ms > 0) {
        r = add_retry(arena, &message, status->retry_ms, err);
    }
    if (!r && has_field) {
        r = add_field(arena, &message, field, message.message, err);
    }
    while (!r && google__rpc__status__get_packed_size(&message) > status->max_bytes) {
        if (message.n_details > 0) {
            message.n_details--;
        } else if (message.message[0] != '\0') {
            message.message[0] = '\0';
        } else {
            return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                    "status: does not fit into %zu bytes", status->max_bytes);
        }
    }
    if (!r) {
        r = codec_wire_encode(arena, &message.base, &bytes, &ret->len, err);
    }
    if (!r) {
        ret->data = bytes;
    }
    return r;
}

/* --- unpacking --- */

static void take_info(const Google__Rpc__ErrorInfo *info, struct skrull_error *why)
{
    enum skrull_reason reason = SKRULL_REASON_NONE;

    if (strcmp(info->domain, DOMAIN) != 0) {
        return;
    }
    for (int i = 1; i < SKRULL_N_REASONS; i++) {
        if (strcmp(info->reason, skrull_reason_text((enum skrull_reason)i)) == 0) {
            reason = (enum skrull_reason)i;
        }
    }
    why->reason = reason;
    for (size_t i = 0; i < info->n_metadata; i++) {
        if (strcmp(info->metadata[i]->key, "limit") == 0) {
            why->limit = strtoull(info->metadata[i]->value, NULL, 10);
        }
    }
}

int codec_status_unpack(struct arena *arena, struct rpc_bytes bytes, struct skrull_error *why,
                        struct skrull_error *err)
{
    Google__Rpc__Status *status;
    int r = codec_wire_decode(arena, &google__rpc__status__descriptor, bytes.data, bytes.len,
                              (ProtobufCMessage **)&status, err);

    for (size_t i = 0; !r && i < status->n_details; i++) {
        const Google__Protobuf__Any *any = status->details[i];
        Google__Rpc__ErrorInfo *info;

        if (strcmp(any->type_url, TYPE_PREFIX "google.rpc.ErrorInfo") != 0) {
            continue;
        }
        r = codec_wire_decode(arena, &google__rpc__error_info__descriptor, any->value.data,
                              any->value.len, (ProtobufCMessage **)&info, err);
        if (!r) {
            take_info(info, why);
        }
    }
    return r;
}

/*
 * Messages from and to bytes. protobuf-c takes what it should not: it recurses without limit,
 * spends a hundred bytes on a wire byte, cuts a varint to 32 bits silently, and passes strings with
 * NUL or broken UTF-8. So a scan guided by the descriptor looks at every byte first, and what it
 * lets through is unpacked in an arena whose budget bounds the rest. Any thread, one arena each.
 */
#include "codec_wire.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"

#define MAX_DEPTH 16
#define MAX_VARINT_BYTES 10
#define PATH_SIZE 256 /* of a field in messages; cut there */

static void *allocate(void *data, size_t size)
{
    return arena_alloc(data, 1, size);
}

static void release(void *data, void *pointer)
{
    (void)data;
    (void)pointer;
}

ProtobufCAllocator codec_wire_allocator(struct arena *arena)
{
    return (ProtobufCAllocator){.alloc = allocate, .free = release, .allocator_data = arena};
}

/* Bytes not yet read. */
struct reader {
    const uint8_t *at, *end;
};

static size_t bytes_left(const struct reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

static bool read_varint(struct reader *reader, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < MAX_VARINT_BYTES && reader->at < reader->end; i++) {
        uint8_t byte = *reader->at++;

        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *ret_value = value;
            return i < MAX_VARINT_BYTES - 1 || byte < 2; /* the tenth byte has room for one bit */
        }
    }
    return false;
}

/* Takes the next `len` bytes as a reader of their own. */
static bool read_bytes(struct reader *reader, uint64_t len, struct reader *ret)
{
    if (len > bytes_left(reader)) {
        return false;
    }
    *ret = (struct reader){.at = reader->at, .end = reader->at + len};
    reader->at += len;
    return true;
}

/* Bytes of the UTF-8 sequence at `at`, 0: it is none (RFC 3629, table 3-7 of Unicode). */
static size_t utf8_sequence(const uint8_t *at, size_t left)
{
    uint8_t first = at[0], low = 0x80, high = 0xbf;
    size_t len;

    if (first < 0x80) {
        return 1;
    }
    if (first < 0xc2 || first > 0xf4) {
        return 0;
    }
    len = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first == 0xe0) {
        low = 0xa0;
    } else if (first == 0xed) {
        high = 0x9f;
    } else if (first == 0xf0) {
        low = 0x90;
    } else if (first == 0xf4) {
        high = 0x8f;
    }
    if (left < len || at[1] < low || at[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < len; i++) {
        if (at[i] < 0x80 || at[i] > 0xbf) {
            return 0;
        }
    }
    return len;
}

/* What is wrong with a string, or NULL. */
static const char *text_fault(struct reader text)
{
    if (memchr(text.at, '\0', bytes_left(&text))) {
        return "holds a NUL byte";
    }
    while (text.at < text.end) {
        size_t len = utf8_sequence(text.at, bytes_left(&text));

        if (len == 0) {
            return "is not UTF-8";
        }
        text.at += len;
    }
    return NULL;
}

/* Where the scan is, for messages: "CreateJobRequest.job.data". */
struct scan {
    struct skrull_error *err;
    const char *root;            /* name of the whole message */
    const char *path[MAX_DEPTH]; /* [depth - 1] fields from there */
    unsigned depth;
};

static int scan_message(struct scan *scan, const ProtobufCMessageDescriptor *descriptor,
                        struct reader reader);

static int refuse(const struct scan *scan, const ProtobufCFieldDescriptor *field, const char *why)
{
    char path[PATH_SIZE] = "";
    size_t len = 0;

    for (unsigned i = 0; i + 1 < scan->depth && len < sizeof(path); i++) {
        len += (size_t)snprintf(path + len, sizeof(path) - len, ".%s", scan->path[i]);
    }
    return skrull_error_set(scan->err, SKRULL_ERR_INVALID_ARGUMENT, "%s%s%s%s: %s", scan->root,
                            path, field ? "." : "", field ? field->name : "", why);
}

/* The wire type of a single value. */
static ProtobufCWireType wire_type(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return PROTOBUF_C_WIRE_TYPE_64BIT;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_ENUM:
    default:
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    }
}

/* The largest varint that a field of a type takes. The schema has no signed 32-bit field. */
static uint64_t largest_varint(ProtobufCType type)
{
    if (type == PROTOBUF_C_TYPE_UINT32) {
        return UINT32_MAX;
    }
    return type == PROTOBUF_C_TYPE_ENUM ? INT32_MAX : UINT64_MAX;
}

/* Reads a value of `type` that is not length-prefixed; what is wrong, or NULL. */
static const char *number_fault(struct reader *reader, ProtobufCWireType wire, ProtobufCType type)
{
    struct reader skipped;
    uint64_t value;

    if (wire != PROTOBUF_C_WIRE_TYPE_VARINT) {
        return read_bytes(reader, wire == PROTOBUF_C_WIRE_TYPE_64BIT ? 8 : 4, &skipped)
                   ? NULL
                   : "is cut off";
    }
    if (!read_varint(reader, &value)) {
        return "is cut off, or longer than a varint";
    }
    return value > largest_varint(type) ? "is out of range" : NULL;
}

/* A packed list of numbers; what is wrong, or NULL. */
static const char *packed_fault(struct reader reader, ProtobufCType type)
{
    const char *why = NULL;

    while (!why && reader.at < reader.end) {
        why = number_fault(&reader, wire_type(type), type);
    }
    return why;
}

/* The content of a length-prefixed field. */
static int scan_content(struct scan *scan, const ProtobufCFieldDescriptor *field,
                        struct reader content)
{
    const char *why = NULL;

    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        scan->path[scan->depth - 1] = field->name;
        return scan_message(scan, field->descriptor, content);
    }
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        why = text_fault(content);
    } else if (field->type != PROTOBUF_C_TYPE_BYTES) {
        why = packed_fault(content, field->type);
    }
    return why ? refuse(scan, field, why) : 0;
}

/* Whether a known field may come with a wire type. */
static bool takes_wire_type(const ProtobufCFieldDescriptor *field, ProtobufCWireType wire)
{
    return wire == wire_type(field->type) || (wire == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED &&
                                              field->label == PROTOBUF_C_LABEL_REPEATED);
}

/* One field, its tag included. */
static int scan_field(struct scan *scan, const ProtobufCMessageDescriptor *descriptor,
                      struct reader *reader)
{
    const ProtobufCFieldDescriptor *field;
    ProtobufCWireType wire;
    struct reader content;
    const char *why;
    uint64_t tag, len;

    if (!read_varint(reader, &tag) || tag > UINT32_MAX || tag >> 3 == 0) {
        return refuse(scan, NULL, "a field has no valid number");
    }
    wire = (ProtobufCWireType)(tag & 7);
    field = protobuf_c_message_descriptor_get_field(descriptor, (unsigned)(tag >> 3));
    if (field && !takes_wire_type(field, wire)) {
        return refuse(scan, field, "is of another type");
    }
    switch (wire) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
    case PROTOBUF_C_WIRE_TYPE_64BIT:
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        why = number_fault(reader, wire, field ? field->type : PROTOBUF_C_TYPE_UINT64);
        return why ? refuse(scan, field, why) : 0;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        if (!read_varint(reader, &len) || !read_bytes(reader, len, &content)) {
            return refuse(scan, field, "is cut off");
        }
        return field ? scan_content(scan, field, content) : 0;
    default:
        return refuse(scan, field, "has an unknown wire type");
    }
}

static int scan_message(struct scan *scan, const ProtobufCMessageDescriptor *descriptor,
                        struct reader reader)
{
    int r = 0;

    if (scan->depth == MAX_DEPTH) {
        return refuse(scan, NULL, "is nested too deep, 16 levels are allowed");
    }
    scan->depth++;
    while (!r && reader.at < reader.end) {
        r = scan_field(scan, descriptor, &reader);
    }
    scan->depth--;
    return r;
}

/* An arena that remembers whether it ran dry, which protobuf-c does not tell from bad bytes. */
struct budget {
    struct arena *arena;
    bool is_spent;
};

static void *allocate_in_budget(void *data, size_t size)
{
    struct budget *budget = data;
    void *memory = arena_alloc(budget->arena, 1, size);

    if (!memory) {
        budget->is_spent = true;
    }
    return memory;
}

int codec_wire_decode(struct arena *arena, const ProtobufCMessageDescriptor *descriptor,
                      const uint8_t *bytes, size_t len, ProtobufCMessage **ret_message,
                      struct skrull_error *err)
{
    static const uint8_t nothing[1];
    struct budget budget = {.arena = arena};
    ProtobufCAllocator allocator = {
        .alloc = allocate_in_budget, .free = release, .allocator_data = &budget};
    struct scan scan = {.err = err, .root = descriptor->short_name};
    ProtobufCMessage *message;
    int r;

    bytes = bytes ? bytes : nothing;
    r = scan_message(&scan, descriptor, (struct reader){.at = bytes, .end = bytes + len});
    if (r) {
        return r;
    }
    message = protobuf_c_message_unpack(descriptor, &allocator, len, bytes);
    if (message) {
        *ret_message = message;
        return 0;
    }
    if (budget.is_spent) {
        return skrull_error_because(
            err, SKRULL_ERR_RESOURCE_EXHAUSTED, SKRULL_REASON_REQUEST_TOO_LARGE, 0,
            "%s: %zu bytes of message need more memory than a request may use",
            descriptor->short_name, len);
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s: not such a message",
                            descriptor->short_name);
}

int codec_wire_encode(struct arena *arena, const ProtobufCMessage *message, uint8_t **ret_bytes,
                      size_t *ret_len, struct skrull_error *err)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = arena_alloc(arena, len, 1);

    if (!bytes) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "%s: no memory for %zu bytes of message",
                                message->descriptor->short_name, len);
    }
    *ret_len = protobuf_c_message_pack(message, bytes);
    *ret_bytes = bytes;
    return 0;
}

char *codec_wire_borrow(const char *text)
{
    return (char *)(uintptr_t)(text ? text : "");
}

void codec_wire_clean_text(char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        size_t len = utf8_sequence((const uint8_t *)text, left);

        if (len == 0 || (unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = '?';
            len = 1;
        }
        text += len;
        left -= len;
    }
}

int codec_wire_check_text(const char *field, const char *text, size_t max_len,
                          struct skrull_error *err)
{
    size_t len = strlen(text);

    if (len > max_len) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %zu bytes, at most %zu are allowed", field, len, max_len);
    }
    return 0;
}

int codec_wire_check_count(const char *field, size_t count, size_t max_count,
                           struct skrull_error *err)
{
    if (count > max_count) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %zu entries, at most %zu are allowed", field, count,
                                max_count);
    }
    return 0;
}

/*
 * Messages to JSON by their descriptors: the canonical mapping of proto3. jansson cannot print a
 * double as its shortest form, and a tree of a plan takes many times its text, so the text is
 * written straight into one growing buffer. Pure functions.
 */
#include "codec_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckd.h"
#include "text.h"

#define FIRST_SIZE ((size_t)256)

struct out {
    char *text;
    size_t len, size;
    bool is_pretty;
    bool failed; /* out of memory; what follows is not written */
    unsigned depth;
};

static void put(struct out *out, const char *text, size_t len)
{
    size_t need, size = out->size ? out->size : FIRST_SIZE;
    char *more;

    if (out->failed) {
        return;
    }
    if (ckd_add(&need, out->len, len) || need > SIZE_MAX / 4) {
        out->failed = true;
        return;
    }
    while (size < need + 1) {
        size *= 2;
    }
    if (size != out->size) {
        more = realloc(out->text, size);
        if (!more) {
            out->failed = true;
            return;
        }
        out->text = more;
        out->size = size;
    }
    memcpy(out->text + out->len, text, len);
    out->len = need;
    out->text[need] = '\0';
}

static void put_text(struct out *out, const char *text)
{
    put(out, text, strlen(text));
}

SKRULL_PRINTF(2, 3)
static void put_format(struct out *out, const char *format, ...)
{
    char text[64];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    put_text(out, text);
}

static void put_newline(struct out *out)
{
    if (out->is_pretty) {
        put(out, "\n", 1);
        for (unsigned i = 0; i < out->depth; i++) {
            put(out, "  ", 2);
        }
    }
}

/* What JSON lets stand in a string as it is: runs of it are copied at once. */
static size_t plain_run(const char *text)
{
    size_t run = 0, len;

    while ((unsigned char)text[run] >= 0x20 && text[run] != '"' && text[run] != '\\') {
        len = text_character_len(text + run);
        if (len == 0) {
            break;
        }
        run += len;
    }
    return run;
}

static void put_escaped(struct out *out, char c)
{
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* the character, its letter */

    for (size_t i = 0; i + 1 < sizeof(named); i += 2) {
        if (c == named[i]) {
            put_format(out, "\\%c", named[i + 1]);
            return;
        }
    }
    if ((unsigned char)c < 0x20) {
        put_format(out, "\\u%04x", (unsigned)(unsigned char)c);
    } else {
        put_text(out, "\\ufffd"); /* not UTF-8 */
    }
}

static void put_string(struct out *out, const char *text)
{
    put(out, "\"", 1);
    for (;;) {
        const size_t run = plain_run(text);

        put(out, text, run);
        text += run;
        if (!*text) {
            break;
        }
        put_escaped(out, *text++);
    }
    put(out, "\"", 1);
}

/* "micro_batches" as "microBatches". */
static void put_name(struct out *out, const char *name)
{
    char c;

    put(out, "\"", 1);
    for (; *name; name++) {
        c = *name;
        if (c == '_' && name[1]) {
            c = *++name;
            c = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
        }
        put(out, &c, 1);
    }
    put_text(out, out->is_pretty ? "\": " : "\":");
}

/* The fewest digits that read back as the same double; any locale's point becomes a dot. */
static void put_double(struct out *out, double value)
{
    char text[32], *end;

    if (isnan(value)) {
        put_text(out, "\"NaN\"");
        return;
    }
    if (isinf(value)) {
        put_text(out, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        double back;

        (void)snprintf(text, sizeof(text), "%.*g", digits, value);
        back = strtod(text, &end);
        if (memcmp(&back, &value, sizeof(value)) == 0) {
            break;
        }
    }
    for (end = text; *end; end++) {
        if (!strchr("0123456789+-e", *end)) {
            *end = '.';
        }
    }
    put_text(out, text);
}

static void put_enum(struct out *out, const ProtobufCEnumDescriptor *descriptor, int number)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(descriptor, number);

    if (value) {
        put_string(out, value->name);
    } else {
        put_format(out, "%d", number);
    }
}

static void put_message(struct out *out, const ProtobufCMessage *message);

static uint32_t load_32(const void *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static uint64_t load_64(const void *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static const void *load_pointer(const void *at)
{
    const void *value;

    memcpy(&value, at, sizeof(value));
    return value;
}

/* One value, an element of a list or a field's own. */
static void put_value(struct out *out, const ProtobufCFieldDescriptor *field, const void *at)
{
    double real;

    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        put_format(out, "%" PRId32, (int32_t)load_32(at));
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        put_format(out, "%" PRIu32, load_32(at));
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        put_format(out, "\"%" PRId64 "\"", (int64_t)load_64(at));
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        put_format(out, "\"%" PRIu64 "\"", load_64(at));
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        memcpy(&real, at, sizeof(real));
        put_double(out, real);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        put_text(out, load_32(at) ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        put_enum(out, field->descriptor, (int)load_32(at));
        break;
    case PROTOBUF_C_TYPE_STRING:
        put_string(out, load_pointer(at));
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        put_message(out, load_pointer(at));
        break;
    case PROTOBUF_C_TYPE_FLOAT: /* not in our schema */
    case PROTOBUF_C_TYPE_BYTES:
        out->failed = true;
        break;
    }
}

static void put_list(struct out *out, const ProtobufCFieldDescriptor *field, const char *items,
                     size_t n_items)
{
    const size_t size = codec_json_value_size(field->type);

    put(out, "[", 1);
    out->depth++;
    for (size_t i = 0; i < n_items && !out->failed; i++) {
        if (i > 0) {
            put(out, ",", 1);
        }
        put_newline(out);
        put_value(out, field, items + i * size);
    }
    out->depth--;
    put_newline(out);
    put(out, "]", 1);
}

size_t codec_json_value_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_ENUM:
        return sizeof(uint32_t);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    }
    return 0;
}

/* Whether a single field has nothing to say: zero, empty, not the oneof's choice. */
static bool is_absent(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const char *at = (const char *)message + field->offset;
    const char *text;

    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        return load_32((const char *)message + field->quantifier_offset) != field->id;
    }
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        text = load_pointer(at);
        return !text || !*text;
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return !load_pointer(at);
    }
    return codec_json_value_size(field->type) == sizeof(uint32_t) ? load_32(at) == 0
                                                                  : load_64(at) == 0;
}

static void put_message(struct out *out, const ProtobufCMessage *message)
{
    bool is_first = true;

    put(out, "{", 1);
    out->depth++;
    for (unsigned i = 0; i < message->descriptor->n_fields && !out->failed; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        const char *base = (const char *)message;
        size_t n_items = 0;

        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            memcpy(&n_items, base + field->quantifier_offset, sizeof(n_items));
        }
        if (field->label == PROTOBUF_C_LABEL_REPEATED ? n_items == 0 : is_absent(message, field)) {
            continue;
        }
        if (!is_first) {
            put(out, ",", 1);
        }
        is_first = false;
        put_newline(out);
        put_name(out, field->name);
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            put_list(out, field, load_pointer(base + field->offset), n_items);
        } else {
            put_value(out, field, base + field->offset);
        }
    }
    out->depth--;
    if (!is_first) {
        put_newline(out);
    }
    put(out, "}", 1);
}

char *codec_json_encode(const ProtobufCMessage *message, bool is_pretty)
{
    struct out out = {.is_pretty = is_pretty};

    put_message(&out, message);
    if (out.failed) {
        free(out.text);
        return NULL;
    }
    return out.text;
}

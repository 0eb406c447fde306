/*
 * JSON to messages by their descriptors: what the canonical mapping of proto3 lets a reader take,
 * less what only hides mistakes (unknown names, whole numbers with a fraction or an exponent).
 * jansson reads the text; its tree is walked once. Where a fault is, is kept as a chain on the
 * stack and written out only for a message. Pure functions over the caller's arena.
 */
#include "codec_json.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "arena.h"
#include "job_fields.h"
#include "text.h"

#define MAX_DEPTH 32
#define PLACE_SIZE 256
#define MAX_FIELDS 64 /* of one message: they are noted in a word */

/* A value's place in the document, the innermost name first. */
struct place {
    const struct place *outer;
    const char *name; /* NULL: an element of the outer place's list */
    size_t idx;
};

struct decoder {
    struct arena *arena;
    struct skrull_error *err;
    unsigned depth;
};

static void write_place(const struct place *place, char ret[PLACE_SIZE])
{
    char clip[TEXT_CLIP_SIZE];
    size_t used;

    if (!place) {
        ret[0] = '\0';
        return;
    }
    write_place(place->outer, ret);
    used = strlen(ret);
    if (place->name) {
        (void)snprintf(ret + used, PLACE_SIZE - used, "%s%s", used > 0 ? "." : "",
                       text_clip(place->name, clip));
    } else {
        (void)snprintf(ret + used, PLACE_SIZE - used, "[%zu]", place->idx);
    }
}

static int refuse(const struct decoder *decoder, const struct place *place, const char *why)
{
    char text[PLACE_SIZE];

    write_place(place, text);
    return skrull_error_set(decoder->err, SKRULL_ERR_INVALID_ARGUMENT, "%s: %s",
                            text[0] ? text : "the document", why);
}

static int out_of_memory(const struct decoder *decoder)
{
    return skrull_error_set(decoder->err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                            "the document takes more memory than is allowed");
}

/* A whole number of either sign, as JSON number or as digits in a string. */
struct whole {
    bool is_negative;
    uint64_t magnitude;
};

static bool parse_digits(const char *text, struct whole *ret)
{
    const bool is_negative = text[0] == '-';
    const char *digits = text + is_negative;
    const size_t len = strspn(digits, "0123456789");

    if (len == 0 || digits[len] || (digits[0] == '0' && len > 1)) {
        return false;
    }
    errno = 0;
    ret->magnitude = strtoull(digits, NULL, 10);
    ret->is_negative = is_negative && ret->magnitude > 0;
    return errno == 0;
}

static bool read_whole(const json_t *value, struct whole *ret)
{
    json_int_t number;

    if (json_is_string(value)) {
        return parse_digits(json_string_value(value), ret);
    }
    if (!json_is_integer(value)) {
        return false;
    }
    number = json_integer_value(value);
    ret->is_negative = number < 0;
    ret->magnitude = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    return true;
}

/* Stores a whole number of `size` bytes within -least to most. */
static int store_whole(const struct decoder *decoder, const struct place *place,
                       const json_t *value, uint64_t least, uint64_t most, size_t size, void *at)
{
    char why[96];
    struct whole whole;
    uint64_t wide;
    uint32_t narrow;

    if (!read_whole(value, &whole) || whole.magnitude > (whole.is_negative ? least : most)) {
        (void)snprintf(why, sizeof(why),
                       "a whole number, %s%" PRIu64 " to %" PRIu64 ", is allowed only",
                       least > 0 ? "-" : "", least, most);
        return refuse(decoder, place, why);
    }
    wide = whole.is_negative ? 0 - whole.magnitude : whole.magnitude;
    narrow = (uint32_t)wide;
    if (size == sizeof(narrow)) {
        memcpy(at, &narrow, sizeof(narrow));
    } else {
        memcpy(at, &wide, sizeof(wide));
    }
    return 0;
}

/* A double in a string: a number in JSON's grammar, or one of the three that JSON has no number
 * for. */
static bool read_double_string(const char *text, double *ret)
{
    json_t *number;
    bool is_number;

    if (strcmp(text, "NaN") == 0) {
        *ret = (double)NAN;
        return true;
    }
    if (strcmp(text, "Infinity") == 0 || strcmp(text, "-Infinity") == 0) {
        *ret = text[0] == '-' ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    number = strspn(text, "0123456789+-.eE") == strlen(text)
                 ? json_loads(text, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL)
                 : NULL;
    is_number = json_is_number(number);
    if (is_number) {
        *ret = json_number_value(number);
    }
    json_decref(number);
    return is_number;
}

static int store_double(const struct decoder *decoder, const struct place *place,
                        const json_t *value, void *at)
{
    double real;

    if (json_is_number(value)) {
        real = json_number_value(value);
    } else if (!json_is_string(value) || !read_double_string(json_string_value(value), &real)) {
        return refuse(decoder, place, "a number is allowed only");
    }
    memcpy(at, &real, sizeof(real));
    return 0;
}

static int store_enum(const struct decoder *decoder, const struct place *place, const json_t *value,
                      const ProtobufCEnumDescriptor *descriptor, void *at)
{
    const ProtobufCEnumValue *known = NULL;
    char why[96];

    if (json_is_string(value)) {
        known = protobuf_c_enum_descriptor_get_value_by_name(descriptor, json_string_value(value));
    } else if (json_is_integer(value) && json_integer_value(value) >= 0 &&
               json_integer_value(value) <= INT32_MAX) {
        known = protobuf_c_enum_descriptor_get_value(descriptor, (int)json_integer_value(value));
    }
    if (!known) {
        (void)snprintf(why, sizeof(why), "a name or number of the enum %s is allowed only",
                       descriptor->short_name);
        return refuse(decoder, place, why);
    }
    memcpy(at, &known->value, sizeof(known->value));
    return 0;
}

static int store_string(const struct decoder *decoder, const struct place *place,
                        const json_t *value, void *at)
{
    const char *copy;

    if (!json_is_string(value)) {
        return refuse(decoder, place, "a string is allowed only");
    }
    copy = arena_strndup(decoder->arena, json_string_value(value), json_string_length(value));
    if (!copy) {
        return out_of_memory(decoder);
    }
    memcpy(at, &copy, sizeof(copy));
    return 0;
}

static int store_bool(const struct decoder *decoder, const struct place *place, const json_t *value,
                      void *at)
{
    const protobuf_c_boolean truth = json_is_true(value);

    if (!json_is_boolean(value)) {
        return refuse(decoder, place, "true or false is allowed only");
    }
    memcpy(at, &truth, sizeof(truth));
    return 0;
}

static int decode_message(struct decoder *decoder, const struct place *place, const json_t *value,
                          const ProtobufCMessageDescriptor *descriptor, ProtobufCMessage **ret);

/* One value, an element of a list or a field's own, to `at`. */
static int store_value(struct decoder *decoder, const struct place *place, const json_t *value,
                       const ProtobufCFieldDescriptor *field, void *at)
{
    ProtobufCMessage *message;
    int rc;

    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return store_whole(decoder, place, value, (uint64_t)INT32_MAX + 1, INT32_MAX, 4, at);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return store_whole(decoder, place, value, 0, UINT32_MAX, 4, at);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return store_whole(decoder, place, value, (uint64_t)INT64_MAX + 1, INT64_MAX, 8, at);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return store_whole(decoder, place, value, 0, UINT64_MAX, 8, at);
    case PROTOBUF_C_TYPE_DOUBLE:
        return store_double(decoder, place, value, at);
    case PROTOBUF_C_TYPE_BOOL:
        return store_bool(decoder, place, value, at);
    case PROTOBUF_C_TYPE_ENUM:
        return store_enum(decoder, place, value, field->descriptor, at);
    case PROTOBUF_C_TYPE_STRING:
        return store_string(decoder, place, value, at);
    case PROTOBUF_C_TYPE_MESSAGE:
        rc = decode_message(decoder, place, value, field->descriptor, &message);
        if (!rc) {
            memcpy(at, &message, sizeof(message));
        }
        return rc;
    case PROTOBUF_C_TYPE_FLOAT: /* not in our schema */
    case PROTOBUF_C_TYPE_BYTES:
        break;
    }
    return refuse(decoder, place, "this kind of field is not supported");
}

static int store_list(struct decoder *decoder, const struct place *place, const json_t *value,
                      const ProtobufCFieldDescriptor *field, ProtobufCMessage *message)
{
    const size_t n_items = json_array_size(value), size = codec_json_value_size(field->type);
    char *items;
    int rc = 0;

    if (!json_is_array(value)) {
        return refuse(decoder, place, "a list is allowed only");
    }
    items = arena_alloc(decoder->arena, n_items, size);
    if (!items) {
        return out_of_memory(decoder);
    }
    for (size_t i = 0; i < n_items && !rc; i++) {
        const struct place element = {.outer = place, .idx = i};

        rc = store_value(decoder, &element, json_array_get(value, i), field, items + i * size);
    }
    if (!rc) {
        memcpy((char *)message + field->offset, &items, sizeof(items));
        memcpy((char *)message + field->quantifier_offset, &n_items, sizeof(n_items));
    }
    return rc;
}

/* Stores a single field; of a oneof only one may be given. */
static int store_single(struct decoder *decoder, const struct place *place, const json_t *value,
                        const ProtobufCFieldDescriptor *field, ProtobufCMessage *message)
{
    char *choice = (char *)message + field->quantifier_offset;
    uint32_t chosen = 0;
    int rc;

    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        memcpy(&chosen, choice, sizeof(chosen));
        if (chosen) {
            return refuse(decoder, place, "another member of the same oneof is given too");
        }
    }
    rc = store_value(decoder, place, value, field, (char *)message + field->offset);
    if (!rc && field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        memcpy(choice, &field->id, sizeof(field->id));
    }
    return rc;
}

/* The place of a name's field in the descriptor, or n_fields. */
static unsigned find_field(const ProtobufCMessageDescriptor *descriptor, const char *name)
{
    unsigned i = 0;

    while (i < descriptor->n_fields && !job_name_is(descriptor->fields[i].name, name)) {
        i++;
    }
    return i;
}

static int decode_members(struct decoder *decoder, const struct place *place, json_t *object,
                          ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    uint64_t seen = 0;
    int rc = 0;

    assert(descriptor->n_fields <= MAX_FIELDS);
    for (void *member = json_object_iter(object); member && !rc;
         member = json_object_iter_next(object, member)) {
        const struct place inner = {.outer = place, .name = json_object_iter_key(member)};
        const json_t *value = json_object_iter_value(member);
        const unsigned i = find_field(descriptor, inner.name);

        if (i == descriptor->n_fields) {
            return refuse(decoder, &inner, "unknown name");
        }
        if (seen & (uint64_t)1 << i) {
            return refuse(decoder, &inner, "is given twice, in two spellings");
        }
        seen |= (uint64_t)1 << i;
        if (json_is_null(value)) {
            continue;
        }
        if (descriptor->fields[i].label == PROTOBUF_C_LABEL_REPEATED) {
            rc = store_list(decoder, &inner, value, &descriptor->fields[i], message);
        } else {
            rc = store_single(decoder, &inner, value, &descriptor->fields[i], message);
        }
    }
    return rc;
}

static int decode_message(struct decoder *decoder, const struct place *place, const json_t *value,
                          const ProtobufCMessageDescriptor *descriptor, ProtobufCMessage **ret)
{
    ProtobufCMessage *message;
    json_t *object;
    int rc;

    if (!json_is_object(value)) {
        return refuse(decoder, place, "an object is allowed only");
    }
    if (decoder->depth == MAX_DEPTH) {
        return refuse(decoder, place, "is nested too deep");
    }
    message = arena_alloc(decoder->arena, 1, descriptor->sizeof_message);
    if (!message) {
        return out_of_memory(decoder);
    }
    protobuf_c_message_init(descriptor, message);
    memcpy(&object, &value, sizeof(object)); /* iterating takes no const, yet changes nothing */
    decoder->depth++;
    rc = decode_members(decoder, place, object, message);
    decoder->depth--;
    if (!rc) {
        *ret = message;
    }
    return rc;
}

int codec_json_decode(struct arena *arena, const ProtobufCMessageDescriptor *descriptor,
                      const char *text, size_t len, ProtobufCMessage **ret_message,
                      struct skrull_error *err)
{
    struct decoder decoder = {.arena = arena, .err = err};
    char clip[TEXT_CLIP_SIZE];
    json_error_t fault;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &fault);
    int rc;

    if (!root && json_error_code(&fault) == json_error_out_of_memory) {
        return out_of_memory(&decoder);
    }
    if (!root) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "line %d: not JSON: %s",
                                fault.line, text_clip(fault.text, clip));
    }
    rc = decode_message(&decoder, NULL, root, descriptor, ret_message);
    json_decref(root);
    return rc;
}

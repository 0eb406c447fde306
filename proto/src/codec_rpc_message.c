/*
 * Requests and replies, any of them: protobuf-c's descriptor says which fields are strings and
 * lists, codec_rpc_limits.def how long they may be, so that none goes unchecked. Any thread, one
 * arena each.
 */
#include "codec_rpc_message.h"

#include <string.h>

#include "codec_wire.h"

/* What has no line in codec_rpc_limits.def: page tokens, request ids, names of services. */
#define MAX_TEXT 128

static size_t limit_of(const ProtobufCFieldDescriptor *field)
{
    static const struct {
        const char *field;
        size_t most;
    } limits[] = {
#define LIMIT(field, most) {#field, (most)},
#include "codec_rpc_limits.def"
#undef LIMIT
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (strcmp(field->name, limits[i].field) == 0) {
            return limits[i].most;
        }
    }
    return field->label == PROTOBUF_C_LABEL_REPEATED ? RPC_MAX_ENTRIES : MAX_TEXT;
}

static int check_field(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                       struct skrull_error *err)
{
    const char *at = (const char *)message;
    const char *text;
    size_t count;

    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        memcpy(&count, at + field->quantifier_offset, sizeof(count));
        return codec_wire_check_count(field->name, count, limit_of(field), err);
    }
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        memcpy(&text, at + field->offset, sizeof(text));
        return codec_wire_check_text(field->name, text, limit_of(field), err);
    }
    return 0;
}

int codec_rpc_check(const ProtobufCMessage *message, struct skrull_error *err)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    int r = 0;

    for (unsigned i = 0; r == 0 && i < descriptor->n_fields; i++) {
        r = check_field(message, &descriptor->fields[i], err);
    }
    return r;
}

int codec_rpc_decode(struct arena *arena, const ProtobufCMessageDescriptor *descriptor,
                     struct rpc_bytes bytes, ProtobufCMessage **ret_message,
                     struct skrull_error *err)
{
    ProtobufCMessage *message;
    int r = codec_wire_decode(arena, descriptor, bytes.data, bytes.len, &message, err);

    r = r ? r : codec_rpc_check(message, err);
    if (r == 0) {
        *ret_message = message;
    }
    return r;
}

int codec_rpc_encode(struct arena *arena, const ProtobufCMessage *message, struct rpc_bytes *ret,
                     struct skrull_error *err)
{
    uint8_t *data;
    int r = codec_wire_encode(arena, message, &data, &ret->len, err);

    if (r == 0) {
        ret->data = data;
    }
    return r;
}

int codec_rpc_no_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "message: out of memory");
}

int codec_rpc_require(const char *field, const void *message, struct skrull_error *err)
{
    return message ? 0
                   : skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s: is required", field);
}

/*
 * Bytes as messages from the wire, and as JSON. The first byte picks: a request or reply of
 * codec_rpc.h, a stream's event, a plan, or any message by its descriptor (as wire bytes, or as
 * JSON). What unpacks packs again to a message that unpacks to the same.
 */
#include <stdlib.h>
#include <string.h>

#include <protobuf-c/protobuf-c.h>

#include "skrull/v1/planner.pb-c.h"

#include "arena.h"
#include "codec_json.h"
#include "codec_reflection.h"
#include "codec_rpc.h"
#include "codec_status.h"
#include "codec_text.h"
#include "codec_wire.h"
#include "descriptor_set.h"
#include "fuzz/fuzz.h"

#define BUDGET_BYTES ((size_t)16 << 20)

static void check_error(int rc, const struct skrull_error *err)
{
    fuzz_check(rc == 0 || rc == SKRULL_ERR_INVALID_ARGUMENT || rc == SKRULL_ERR_DATA_LOSS ||
                   rc == SKRULL_ERR_RESOURCE_EXHAUSTED,
               "a message is sound, or one of three errors");
    fuzz_check(rc == 0 || err->message[0] != 0, "an error has a message");
}

static void check_same(struct rpc_bytes a, struct rpc_bytes b)
{
    fuzz_check(a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0),
               "packed, unpacked and packed again it has the same bytes");
}

/* One function a codec. */
#define CODEC(name, type)                                                                          \
    static void run_##name(struct arena *arena, struct rpc_bytes bytes)                            \
    {                                                                                              \
        struct rpc_bytes packed = {0}, again = {0};                                                \
        struct skrull_error err = {0};                                                             \
        type value, copy;                                                                          \
        int rc;                                                                                    \
                                                                                                   \
        memset(&value, 0, sizeof(value));                                                          \
        memset(&copy, 0, sizeof(copy));                                                            \
        rc = codec_##name##_unpack(arena, bytes, &value, &err);                                    \
        check_error(rc, &err);                                                                     \
        if (rc == 0 && codec_##name##_pack(arena, &value, &packed, &err) == 0) {                   \
            rc = codec_##name##_unpack(arena, packed, &copy, &err);                                \
            fuzz_check(rc == 0, "what was packed unpacks");                                        \
            fuzz_check(codec_##name##_pack(arena, &copy, &again, &err) == 0, "and packs again");   \
            check_same(packed, again);                                                             \
        }                                                                                          \
    }
#define MESSAGE(name)
#include "fuzz/rpc_messages.def"
#undef CODEC
#undef MESSAGE

static void run_health_check_request(struct arena *arena, struct rpc_bytes bytes)
{
    struct skrull_error err = {0};
    const char *service = NULL;
    const int rc = codec_health_check_request_unpack(arena, bytes, &service, &err);

    check_error(rc, &err);
    if (rc == 0) {
        fuzz_check(codec_health_check_request_pack(arena, &service, &bytes, &err) == 0, "it packs");
    }
}

/* A plan from elsewhere: its digests can be computed, whatever it says; it packs again. */
static void check_plan(struct arena *arena, struct skrull_plan *plan)
{
    struct rpc_bytes packed = {0}, again = {0};
    uint8_t digest[SKRULL_DIGEST_SIZE];
    struct skrull_plan *copy = NULL;
    struct skrull_error err = {0};

    for (size_t i = 0; i < plan->n_ranks; i++) {
        fuzz_check(skrull_rank_digest(plan, i, digest) == 0, "a rank has a digest");
    }
    if (codec_plan_pack(arena, plan, NULL, 0, &packed, &err) == 0) {
        fuzz_check(codec_plan_unpack(packed, &copy, &err) == 0, "a packed plan unpacks");
        fuzz_check(codec_plan_pack(arena, copy, NULL, 0, &again, &err) == 0, "and packs again");
        check_same(packed, again);
    }
    skrull_plan_free(copy);
}

static void run_plan(struct arena *arena, struct rpc_bytes bytes)
{
    struct skrull_plan *plan = NULL;
    struct skrull_error err = {0};
    const int rc = codec_plan_unpack(bytes, &plan, &err);

    check_error(rc, &err);
    if (rc == 0) {
        check_plan(arena, plan);
        skrull_plan_free(plan);
    }
}

/* The same from JSON, as programs take it. */
static void run_plan_text(struct arena *arena, struct rpc_bytes bytes)
{
    struct skrull_plan *plan = NULL;
    struct skrull_error err = {0};
    const int rc = codec_text_plan_parse((const char *)bytes.data, bytes.len, &plan, &err);

    check_error(rc, &err);
    if (rc == 0) {
        check_plan(arena, plan);
        skrull_plan_free(plan);
    }
}

/* Details of an error that a server sent. */
static void run_status(struct arena *arena, struct rpc_bytes bytes)
{
    const struct rpc_status status = {.code = 5, .method = "GetPlan", .max_bytes = 4096};
    struct skrull_error why = {.code = SKRULL_ERR_NOT_FOUND, .message = "job: none"}, err = {0};
    struct rpc_bytes packed = {0};
    const int rc = codec_status_unpack(arena, bytes, &why, &err);

    check_error(rc, &err);
    if (rc == 0 && codec_status_pack(arena, &why, &status, &packed, &err) == 0) {
        fuzz_check(packed.len <= status.max_bytes, "details keep their limit");
        fuzz_check(codec_status_unpack(arena, packed, &why, &err) == 0, "what was packed unpacks");
    }
}

/* A question about the schema: whatever is asked has an answer, unless it is no question. */
static void run_reflection(struct arena *arena, struct rpc_bytes bytes)
{
    static struct reflection *reflection; /* made once, as a daemon does */
    struct rpc_bytes response = {0};
    struct skrull_error err = {0};
    int rc;

    if (!reflection) {
        fuzz_check(reflection_new(descriptor_set, descriptor_set_len, &reflection, &err) == 0,
                   "the schema can be read");
    }
    rc = reflection_answer(reflection, arena, bytes, &response, &err);
    check_error(rc, &err);
    fuzz_check(rc != 0 || response.len > 0, "an answer is not empty");
}

static void run_stream_event(struct arena *arena, struct rpc_bytes bytes)
{
    struct rpc_stream_event event = {0};
    struct skrull_error err = {0};
    uint8_t *packed = NULL;
    size_t len = 0;
    const int rc = codec_stream_event_unpack(arena, bytes, &event, &err);

    check_error(rc, &err);
    if (rc == 0 && event.kind == RPC_STREAM_PLAN) {
        fuzz_check(event.plan && event.plan->n_ranks == 1, "a stream's plan has one rank");
        if (codec_stream_plan_pack(event.plan, 0, &packed, &len, &err) == 0) {
            free(packed);
        }
        skrull_plan_free(event.plan);
    }
}

/* A message whose JSON reads back to a message of the same JSON; but what no enum has a name for is
 * written as a number and not taken back. */
static void check_json(struct arena *arena, const ProtobufCMessage *message)
{
    char *json = codec_json_encode(message, false), *again;
    ProtobufCMessage *copy = NULL;
    struct skrull_error err = {0};
    int rc;

    fuzz_check(json != NULL, "a message has JSON");
    rc = codec_json_decode(arena, message->descriptor, json, strlen(json), &copy, &err);
    check_error(rc, &err);
    fuzz_check(rc != SKRULL_ERR_INVALID_ARGUMENT || strstr(err.message, "of the enum"),
               "what was written as JSON reads back");
    if (rc == 0) {
        again = codec_json_encode(copy, false);
        fuzz_check(again && strcmp(json, again) == 0, "to the same JSON");
        free(again);
    }
    free(json);
}

static void run_wire(struct arena *arena, struct rpc_bytes bytes,
                     const ProtobufCMessageDescriptor *descriptor)
{
    ProtobufCMessage *message = NULL;
    struct skrull_error err = {0};
    struct rpc_bytes packed = {0};
    uint8_t *data = NULL;
    const int rc = codec_wire_decode(arena, descriptor, bytes.data, bytes.len, &message, &err);

    check_error(rc, &err);
    if (rc == 0) {
        check_json(arena, message);
        if (codec_wire_encode(arena, message, &data, &packed.len, &err) == 0) {
            fuzz_check(codec_wire_decode(arena, descriptor, data, packed.len, &message, &err) !=
                           SKRULL_ERR_INVALID_ARGUMENT,
                       "what was encoded decodes");
        }
    }
}

static void run_text(struct arena *arena, struct rpc_bytes bytes,
                     const ProtobufCMessageDescriptor *descriptor)
{
    ProtobufCMessage *message = NULL;
    struct skrull_error err = {0};
    const int rc =
        codec_json_decode(arena, descriptor, (const char *)bytes.data, bytes.len, &message, &err);

    check_error(rc, &err);
    if (rc == 0) {
        check_json(arena, message);
    }
}

typedef void (*run_fn)(struct arena *arena, struct rpc_bytes bytes);

static const run_fn codecs[] = {
#define CODEC(name, type) run_##name,
#define MESSAGE(name)
#include "fuzz/rpc_messages.def"
#undef CODEC
#undef MESSAGE
    run_health_check_request,
    run_plan,
    run_stream_event,
    run_plan_text,
    run_status,
    run_reflection};

static const ProtobufCMessageDescriptor *const descriptors[] = {
#define CODEC(name, type)
#define MESSAGE(name) &skrull__v1__##name##__descriptor,
#include "fuzz/rpc_messages.def"
#undef CODEC
#undef MESSAGE
};

#define N_CODECS (sizeof(codecs) / sizeof(codecs[0]))
#define N_DESCRIPTORS (sizeof(descriptors) / sizeof(descriptors[0]))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {.data = data, .size = size};
    const size_t choice = fuzz_u8(&input) % (N_CODECS + 2 * N_DESCRIPTORS);
    const struct rpc_bytes bytes = {.data = input.data, .len = input.size};
    struct arena *arena = arena_new(BUDGET_BYTES);

    if (choice < N_CODECS) {
        codecs[choice](arena, bytes);
    } else if (choice < N_CODECS + N_DESCRIPTORS) {
        run_wire(arena, bytes, descriptors[choice - N_CODECS]);
    } else {
        run_text(arena, bytes, descriptors[choice - N_CODECS - N_DESCRIPTORS]);
    }
    arena_free(arena);
    return 0;
}

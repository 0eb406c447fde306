/*
 * UpdateJob's request, to and from wire bytes: a job of which only some fields count, and the mask
 * that says which. Paths are checked for length only; what they name is the job's business. Any
 * thread, one arena each.
 */
#include "codec_rpc.h"

#include <stdio.h>

#include "skrull/v1/planner.pb-c.h"

#include "arena.h"
#include "codec_job.h"
#include "codec_rpc_message.h"
#include "codec_wire.h"

int codec_update_job_request_pack(struct arena *arena, const struct rpc_update_job *value,
                                  struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__UpdateJobRequest message;
    Google__Protobuf__FieldMask mask;
    int r;

    skrull__v1__update_job_request__init(&message);
    google__protobuf__field_mask__init(&mask);
    r = codec_job_encode(arena, value->job, &message.job, err);
    if (r) {
        return r;
    }
    mask.paths = ARENA_ARRAY(arena, char *, value->n_mask);
    if (!mask.paths) {
        return codec_rpc_no_memory(err);
    }
    for (size_t i = 0; i < value->n_mask; i++) {
        mask.paths[i] = codec_wire_borrow(value->mask[i]);
    }
    mask.n_paths = value->n_mask;
    message.update_mask = value->n_mask ? &mask : NULL;
    message.expected_revision = value->expected_revision;
    message.from_step = value->from_step;
    return codec_rpc_encode(arena, &message.base, ret, err);
}

static int decode_mask(struct arena *arena, const Google__Protobuf__FieldMask *message,
                       struct rpc_update_job *ret, struct skrull_error *err)
{
    const char **mask;
    int r = codec_wire_check_count("update_mask.paths", message->n_paths, RPC_MAX_MASK, err);

    if (r) {
        return r;
    }
    mask = ARENA_ARRAY(arena, const char *, message->n_paths);
    if (!mask) {
        return codec_rpc_no_memory(err);
    }
    for (size_t i = 0; r == 0 && i < message->n_paths; i++) {
        char field[48];

        (void)snprintf(field, sizeof(field), "update_mask.paths[%zu]", i);
        r = codec_wire_check_text(field, message->paths[i], RPC_MAX_MASK_PATH, err);
        mask[i] = message->paths[i];
    }
    ret->mask = mask;
    ret->n_mask = message->n_paths;
    return r;
}

int codec_update_job_request_unpack(struct arena *arena, struct rpc_bytes bytes,
                                    struct rpc_update_job *ret, struct skrull_error *err)
{
    Skrull__V1__UpdateJobRequest *message;
    struct rpc_update_job update = {0};
    int r = CODEC_RPC_DECODE(arena, skrull__v1__update_job_request, bytes, message, err);

    r = r ? r : codec_rpc_require("job", message->job, err);
    if (!r) {
        r = codec_job_decode(arena, message->job, &update.job, err);
    }
    if (!r && message->update_mask) {
        r = decode_mask(arena, message->update_mask, &update, err);
    }
    if (!r) {
        update.expected_revision = message->expected_revision;
        update.from_step = message->from_step;
        *ret = update;
    }
    return r;
}

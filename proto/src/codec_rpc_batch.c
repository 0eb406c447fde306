/*
 * PlanBatch's request, to and from wire bytes. Its lists are the longest there are; they are handed
 * out where protobuf-c put them. Any thread, one arena each.
 */
#include "codec_rpc.h"

#include "skrull/v1/planner.pb-c.h"

#include "arena.h"
#include "codec_job.h"
#include "codec_wire.h"

int codec_plan_batch_request_pack(struct arena *arena, const struct rpc_plan_batch *value,
                                  struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__PlanBatchRequest message;
    uint8_t *data;
    int r;

    skrull__v1__plan_batch_request__init(&message);
    r = codec_job_encode(arena, value->job, &message.job, err);
    if (r) {
        return r;
    }
    message.lengths = value->lengths;
    message.n_lengths = value->n_lengths;
    message.loss_tokens = value->loss_tokens;
    message.n_loss_tokens = value->n_loss_tokens;
    message.data_ranks = value->data_ranks;
    message.n_data_ranks = value->n_data_ranks;
    r = codec_wire_encode(arena, &message.base, &data, &ret->len, err);
    if (!r) {
        ret->data = data;
    }
    return r;
}

int codec_plan_batch_request_unpack(struct arena *arena, struct rpc_bytes bytes,
                                    struct rpc_plan_batch *ret, struct skrull_error *err)
{
    Skrull__V1__PlanBatchRequest *message;
    struct skrull_job *job;
    int r = codec_wire_decode(arena, &skrull__v1__plan_batch_request__descriptor, bytes.data,
                              bytes.len, (ProtobufCMessage **)&message, err);

    if (!r && !message->job) {
        r = skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "job: is required");
    }
    if (!r) {
        r = codec_wire_check_count("lengths", message->n_lengths, RPC_MAX_LENGTHS, err);
    }
    if (!r) {
        r = codec_wire_check_count("loss_tokens", message->n_loss_tokens, RPC_MAX_LENGTHS, err);
    }
    if (!r) {
        r = codec_wire_check_count("data_ranks", message->n_data_ranks, RPC_MAX_ENTRIES, err);
    }
    if (!r) {
        r = codec_job_decode(arena, message->job, &job, err);
    }
    if (!r) {
        *ret = (struct rpc_plan_batch){.job = job,
                                       .lengths = message->lengths,
                                       .loss_tokens = message->loss_tokens,
                                       .data_ranks = message->data_ranks,
                                       .n_lengths = message->n_lengths,
                                       .n_loss_tokens = message->n_loss_tokens,
                                       .n_data_ranks = message->n_data_ranks};
    }
    return r;
}

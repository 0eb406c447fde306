/*
 * PlanBatch's request, to and from wire bytes. Its lists are the longest there are; they are handed
 * out where protobuf-c put them. Any thread, one arena each.
 */
#include "codec_rpc.h"

#include "skrull/v1/planner.pb-c.h"

#include "arena.h"
#include "codec_job.h"
#include "codec_rpc_message.h"
#include "codec_wire.h"

int codec_plan_batch_request_pack(struct arena *arena, const struct rpc_plan_batch *value,
                                  struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__PlanBatchRequest message;
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
    return codec_rpc_encode(arena, &message.base, ret, err);
}

int codec_plan_batch_request_unpack(struct arena *arena, struct rpc_bytes bytes,
                                    struct rpc_plan_batch *ret, struct skrull_error *err)
{
    Skrull__V1__PlanBatchRequest *message;
    struct skrull_job *job;
    int r = CODEC_RPC_DECODE(arena, skrull__v1__plan_batch_request, bytes, message, err);

    r = r ? r : codec_rpc_require("job", message->job, err);
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

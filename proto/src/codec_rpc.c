/*
 * Requests and replies about jobs and plans, to and from wire bytes. Unpacking hands out strings
 * where protobuf-c put them, in the caller's arena, after their lengths were checked. Any thread,
 * one arena each.
 */
#include "codec_rpc.h"

#include <stdlib.h>
#include <string.h>

#include "skrull/v1/planner.pb-c.h"

#include "arena.h"
#include "ckd.h"
#include "codec_job.h"
#include "codec_plan.h"
#include "codec_rpc_message.h"
#include "codec_wire.h"

/* What a plan's message may take when it is unpacked. A real one takes some 5 bytes a byte of the
 * wire, the densest (nothing but empty segments) some 80. */
#define PLAN_MEMORY_PER_BYTE ((size_t)96)
#define PLAN_MEMORY_BASE ((size_t)1 << 16)

int codec_create_job_request_pack(struct arena *arena, const struct rpc_create_job *value,
                                  struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__CreateJobRequest message;
    int r;

    skrull__v1__create_job_request__init(&message);
    r = codec_job_encode(arena, value->job, &message.job, err);
    if (r) {
        return r;
    }
    message.request_id = codec_wire_borrow(value->request_id);
    return codec_rpc_encode(arena, &message.base, ret, err);
}

int codec_create_job_request_unpack(struct arena *arena, struct rpc_bytes bytes,
                                    struct rpc_create_job *ret, struct skrull_error *err)
{
    Skrull__V1__CreateJobRequest *message;
    struct skrull_job *job;
    int r;

    r = CODEC_RPC_DECODE(arena, skrull__v1__create_job_request, bytes, message, err);
    r = r ? r : codec_rpc_require("job", message->job, err);
    if (!r) {
        r = codec_job_decode(arena, message->job, &job, err);
    }
    if (!r) {
        *ret = (struct rpc_create_job){.job = job, .request_id = message->request_id};
    }
    return r;
}

int codec_get_job_request_pack(struct arena *arena, const struct rpc_name *value,
                               struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__GetJobRequest message;

    skrull__v1__get_job_request__init(&message);
    message.name = codec_wire_borrow(value->name);
    return codec_rpc_encode(arena, &message.base, ret, err);
}

int codec_get_job_request_unpack(struct arena *arena, struct rpc_bytes bytes, struct rpc_name *ret,
                                 struct skrull_error *err)
{
    Skrull__V1__GetJobRequest *message;
    int r;

    r = CODEC_RPC_DECODE(arena, skrull__v1__get_job_request, bytes, message, err);
    if (!r) {
        ret->name = message->name;
    }
    return r;
}

int codec_delete_job_request_pack(struct arena *arena, const struct rpc_name *value,
                                  struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__DeleteJobRequest message;

    skrull__v1__delete_job_request__init(&message);
    message.name = codec_wire_borrow(value->name);
    return codec_rpc_encode(arena, &message.base, ret, err);
}

int codec_delete_job_request_unpack(struct arena *arena, struct rpc_bytes bytes,
                                    struct rpc_name *ret, struct skrull_error *err)
{
    Skrull__V1__DeleteJobRequest *message;
    int r;

    r = CODEC_RPC_DECODE(arena, skrull__v1__delete_job_request, bytes, message, err);
    if (!r) {
        ret->name = message->name;
    }
    return r;
}

int codec_list_jobs_request_pack(struct arena *arena, const struct rpc_list_jobs *value,
                                 struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__ListJobsRequest message;

    skrull__v1__list_jobs_request__init(&message);
    message.page_size = value->page_size;
    message.page_token = codec_wire_borrow(value->page_token);
    return codec_rpc_encode(arena, &message.base, ret, err);
}

int codec_list_jobs_request_unpack(struct arena *arena, struct rpc_bytes bytes,
                                   struct rpc_list_jobs *ret, struct skrull_error *err)
{
    Skrull__V1__ListJobsRequest *message;
    int r;

    r = CODEC_RPC_DECODE(arena, skrull__v1__list_jobs_request, bytes, message, err);
    if (!r) {
        *ret = (struct rpc_list_jobs){.page_size = message->page_size,
                                      .page_token = message->page_token};
    }
    return r;
}

int codec_list_jobs_response_pack(struct arena *arena, const struct rpc_job_page *value,
                                  struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__ListJobsResponse message;
    int r;

    skrull__v1__list_jobs_response__init(&message);
    message.jobs = ARENA_ARRAY(arena, Skrull__V1__Job *, value->n_jobs);
    if (!message.jobs) {
        return codec_rpc_no_memory(err);
    }
    for (size_t i = 0; i < value->n_jobs; i++) {
        r = codec_job_encode(arena, value->jobs[i], &message.jobs[i], err);
        if (r) {
            return r;
        }
    }
    message.n_jobs = value->n_jobs;
    message.next_page_token = codec_wire_borrow(value->next_page_token);
    return codec_rpc_encode(arena, &message.base, ret, err);
}

int codec_list_jobs_response_unpack(struct arena *arena, struct rpc_bytes bytes,
                                    struct rpc_job_page *ret, struct skrull_error *err)
{
    Skrull__V1__ListJobsResponse *message;
    struct skrull_job **jobs;
    int r;

    r = CODEC_RPC_DECODE(arena, skrull__v1__list_jobs_response, bytes, message, err);
    if (r) {
        return r;
    }
    jobs = ARENA_ARRAY(arena, struct skrull_job *, message->n_jobs);
    if (!jobs) {
        return codec_rpc_no_memory(err);
    }
    for (size_t i = 0; i < message->n_jobs; i++) {
        r = codec_job_decode(arena, message->jobs[i], &jobs[i], err);
        if (r) {
            return skrull_error_prefix(err, r, "jobs[%zu]", i);
        }
    }
    *ret = (struct rpc_job_page){
        .jobs = jobs, .n_jobs = message->n_jobs, .next_page_token = message->next_page_token};
    return 0;
}

int codec_get_plan_request_pack(struct arena *arena, const struct rpc_get_plan *value,
                                struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__GetPlanRequest message;

    skrull__v1__get_plan_request__init(&message);
    message.job = codec_wire_borrow(value->job);
    message.step = value->step;
    message.data_ranks = value->data_ranks;
    message.n_data_ranks = value->n_data_ranks;
    return codec_rpc_encode(arena, &message.base, ret, err);
}

int codec_get_plan_request_unpack(struct arena *arena, struct rpc_bytes bytes,
                                  struct rpc_get_plan *ret, struct skrull_error *err)
{
    Skrull__V1__GetPlanRequest *message;
    int r;

    r = CODEC_RPC_DECODE(arena, skrull__v1__get_plan_request, bytes, message, err);
    if (!r) {
        *ret = (struct rpc_get_plan){.job = message->job,
                                     .step = message->step,
                                     .data_ranks = message->data_ranks,
                                     .n_data_ranks = message->n_data_ranks};
    }
    return r;
}

int codec_stream_plans_request_pack(struct arena *arena, const struct rpc_stream_plans *value,
                                    struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__StreamPlansRequest message;

    skrull__v1__stream_plans_request__init(&message);
    message.job = codec_wire_borrow(value->job);
    message.uid = codec_wire_borrow(value->uid);
    message.data_rank = value->data_rank;
    message.from_step = value->from_step;
    message.count = value->count;
    message.window = value->window;
    message.resume_digest = codec_wire_borrow(value->resume_digest);
    return codec_rpc_encode(arena, &message.base, ret, err);
}

int codec_stream_plans_request_unpack(struct arena *arena, struct rpc_bytes bytes,
                                      struct rpc_stream_plans *ret, struct skrull_error *err)
{
    Skrull__V1__StreamPlansRequest *message;
    int r;

    r = CODEC_RPC_DECODE(arena, skrull__v1__stream_plans_request, bytes, message, err);
    if (!r) {
        *ret = (struct rpc_stream_plans){.job = message->job,
                                         .uid = message->uid,
                                         .data_rank = message->data_rank,
                                         .from_step = message->from_step,
                                         .count = message->count,
                                         .window = message->window,
                                         .resume_digest = message->resume_digest};
    }
    return r;
}

int codec_stream_plan_pack(const struct skrull_plan *plan, size_t i_rank, uint8_t **ret_bytes,
                           size_t *ret_len, struct skrull_error *err)
{
    struct arena *arena = arena_new(SIZE_MAX);
    Skrull__V1__StreamPlansResponse message;
    uint8_t *bytes = NULL;
    size_t len;
    int r;

    if (!arena) {
        return codec_rpc_no_memory(err);
    }
    skrull__v1__stream_plans_response__init(&message);
    message.event_case = SKRULL__V1__STREAM_PLANS_RESPONSE__EVENT_PLAN;
    r = codec_rank_plan_encode(arena, plan, i_rank, &message.plan, err);
    if (r) {
        goto out;
    }
    len = skrull__v1__stream_plans_response__get_packed_size(&message);
    bytes = malloc(len);
    if (!bytes) {
        r = codec_rpc_no_memory(err);
        goto out;
    }
    *ret_len = skrull__v1__stream_plans_response__pack(&message, bytes);
    *ret_bytes = bytes;
out:
    arena_free(arena);
    return r;
}

int codec_stream_heartbeat_pack(struct arena *arena, struct rpc_bytes *ret,
                                struct skrull_error *err)
{
    Skrull__V1__StreamPlansResponse message;
    Skrull__V1__Heartbeat heartbeat;

    skrull__v1__heartbeat__init(&heartbeat);
    skrull__v1__stream_plans_response__init(&message);
    message.event_case = SKRULL__V1__STREAM_PLANS_RESPONSE__EVENT_HEARTBEAT;
    message.heartbeat = &heartbeat;
    return codec_rpc_encode(arena, &message.base, ret, err);
}

int codec_stream_end_pack(struct arena *arena, enum rpc_end_reason reason, uint64_t next_step,
                          struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__StreamPlansResponse message;
    Skrull__V1__StreamEnd end;

    skrull__v1__stream_end__init(&end);
    end.reason = (Skrull__V1__EndReason)reason;
    end.next_step = next_step;
    skrull__v1__stream_plans_response__init(&message);
    message.event_case = SKRULL__V1__STREAM_PLANS_RESPONSE__EVENT_END;
    message.end = &end;
    return codec_rpc_encode(arena, &message.base, ret, err);
}

static int decode_end(const Skrull__V1__StreamEnd *message, struct rpc_stream_event *ret,
                      struct skrull_error *err)
{
    int reason = (int)message->reason;

    if (reason < RPC_END_DONE || reason > RPC_END_DRAINING) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "end.reason: %d is unknown",
                                reason);
    }
    *ret = (struct rpc_stream_event){.kind = RPC_STREAM_END,
                                     .reason = (enum rpc_end_reason)reason,
                                     .next_step = message->next_step};
    return 0;
}

int codec_stream_event_unpack(struct arena *arena, struct rpc_bytes bytes,
                              struct rpc_stream_event *ret, struct skrull_error *err)
{
    Skrull__V1__StreamPlansResponse *message;
    struct skrull_plan *plan;
    int r;

    r = CODEC_RPC_DECODE(arena, skrull__v1__stream_plans_response, bytes, message, err);
    if (r) {
        return r;
    }
    switch (message->event_case) {
    case SKRULL__V1__STREAM_PLANS_RESPONSE__EVENT_PLAN:
        r = codec_rank_plan_decode(message->plan, &plan, err);
        if (!r) {
            *ret = (struct rpc_stream_event){.kind = RPC_STREAM_PLAN, .plan = plan};
        }
        return r;
    case SKRULL__V1__STREAM_PLANS_RESPONSE__EVENT_HEARTBEAT:
        *ret = (struct rpc_stream_event){.kind = RPC_STREAM_HEARTBEAT};
        return 0;
    case SKRULL__V1__STREAM_PLANS_RESPONSE__EVENT_END:
        return decode_end(message->end, ret, err);
    case SKRULL__V1__STREAM_PLANS_RESPONSE__EVENT__NOT_SET:
    case _SKRULL__V1__STREAM_PLANS_RESPONSE__EVENT__CASE_IS_INT_SIZE:
    default:
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "event: neither a plan, a heartbeat nor an end");
    }
}

int codec_plan_pack(struct arena *arena, const struct skrull_plan *plan, const uint32_t *ranks,
                    size_t n_ranks, struct rpc_bytes *ret, struct skrull_error *err)
{
    Skrull__V1__Plan *message;
    int r;

    r = codec_plan_encode(arena, plan, ranks, n_ranks, &message, err);
    return r ? r : codec_rpc_encode(arena, &message->base, ret, err);
}

int codec_plan_unpack(struct rpc_bytes bytes, struct skrull_plan **ret_plan,
                      struct skrull_error *err)
{
    struct arena *arena;
    Skrull__V1__Plan *message;
    size_t budget;
    int r;

    if (ckd_mul(&budget, bytes.len, PLAN_MEMORY_PER_BYTE) ||
        ckd_add(&budget, budget, PLAN_MEMORY_BASE)) {
        budget = SIZE_MAX;
    }
    arena = arena_new(budget);
    if (!arena) {
        return codec_rpc_no_memory(err);
    }
    r = CODEC_RPC_DECODE(arena, skrull__v1__plan, bytes, message, err);
    if (!r) {
        r = codec_plan_decode(message, ret_plan, err);
    }
    arena_free(arena);
    return r;
}

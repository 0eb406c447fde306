/*
 * The service's requests and replies that are not a job or a plan: C words <-> wire bytes, for
 * server and client alike. Everything decoded lives in the arena; everything packed too.
 *
 * Decoding checks what no field may be: not such a message, nesting, strings that are not UTF-8 or
 * hold NUL or are too long (names 63, paths 4,096, digests and uids 32, request ids and paths of a
 * mask 128 bytes), too many list entries (65,536 a list, 64 a mask). INVALID_ARGUMENT names the
 * field; RESOURCE_EXHAUSTED: past the arena's budget.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/job.h>
#include <skrull/plan.h>

struct arena;

#define RPC_MAX_ENTRIES ((size_t)65536)   /* of any list */
#define RPC_MAX_LENGTHS ((size_t)1 << 20) /* but of a batch's lengths and loss tokens */

struct rpc_bytes {
    const uint8_t *data;
    size_t len;
};

struct rpc_create_job {
    struct skrull_job *job;
    const char *request_id; /* "" : none */
};

#define RPC_MAX_MASK 64
#define RPC_MAX_MASK_PATH 128 /* bytes */

struct rpc_update_job {
    struct skrull_job *job;
    const char *const *mask; /* [n_mask] paths; 0: all fields that are set in the job */
    size_t n_mask;
    uint32_t expected_revision; /* 0: any */
    uint64_t from_step;         /* 0: the first that may be */
};

struct rpc_name { /* GetJob, DeleteJob */
    const char *name;
};

struct rpc_list_jobs {
    uint64_t page_size;
    const char *page_token;
};

struct rpc_job_page {
    struct skrull_job **jobs; /* [n_jobs] */
    size_t n_jobs;
    const char *next_page_token;
};

struct rpc_get_plan {
    const char *job;
    uint64_t step;
    uint32_t *data_ranks; /* [n_data_ranks], 0: all */
    size_t n_data_ranks;
};

struct rpc_plan_batch {
    struct skrull_job *job;
    uint32_t *lengths;     /* [n_lengths] */
    uint32_t *loss_tokens; /* [n_loss_tokens] */
    uint32_t *data_ranks;  /* [n_data_ranks], 0: all */
    size_t n_lengths, n_loss_tokens, n_data_ranks;
};

struct rpc_stream_plans {
    const char *job, *uid; /* uid "": any */
    uint32_t data_rank;
    uint64_t from_step, count; /* count 0: all */
    uint32_t window;           /* 0: no limit */
    const char *resume_digest; /* "": not checked */
};

enum rpc_end_reason { RPC_END_DONE = 1, RPC_END_REVISION, RPC_END_DRAINING };

enum rpc_stream_event_kind { RPC_STREAM_PLAN = 1, RPC_STREAM_HEARTBEAT, RPC_STREAM_END };

struct rpc_stream_event {
    enum rpc_stream_event_kind kind;
    struct skrull_plan *plan; /* of one rank; owned: skrull_plan_free */
    enum rpc_end_reason reason;
    uint64_t next_step;
};

struct rpc_micro_batch_times {
    int64_t compute_busy_ns, compute_wait_ns, exchange_busy_ns, exchange_wait_ns;
};

struct rpc_step_report {
    uint64_t step;
    uint32_t data_rank;
    const char *digest;
    int64_t elapsed_ns;
    uint64_t peak_bytes;
    struct rpc_micro_batch_times *micro_batches; /* [n_micro_batches] */
    size_t n_micro_batches;
};

struct rpc_report_steps {
    const char *job, *uid;
    struct rpc_step_report *reports; /* [n_reports] */
    size_t n_reports;
};

struct rpc_describe_index {
    const char *path, *format;
};

struct rpc_index_stats {
    const char *format;
    uint64_t count, tokens, loss_tokens, min, max, p50, p90, p99, p999;
    double mean;
    struct {
        uint64_t upper, count;
    } * bins; /* [n_bins], ascending, empty ones left out */
    size_t n_bins;
};

enum rpc_health {
    RPC_HEALTH_UNKNOWN,
    RPC_HEALTH_SERVING,
    RPC_HEALTH_NOT_SERVING,
    RPC_HEALTH_SERVICE_UNKNOWN
};

/* Each request and reply: pack for one side, unpack for the other. */
#define RPC_CODEC(name, type)                                                                      \
    int codec_##name##_pack(struct arena *arena, const type *value, struct rpc_bytes *ret,         \
                            struct skrull_error *err);                                             \
    int codec_##name##_unpack(struct arena *arena, struct rpc_bytes bytes, type *ret,              \
                              struct skrull_error *err);

RPC_CODEC(create_job_request, struct rpc_create_job)
RPC_CODEC(update_job_request, struct rpc_update_job)
RPC_CODEC(get_job_request, struct rpc_name)
RPC_CODEC(delete_job_request, struct rpc_name)
RPC_CODEC(list_jobs_request, struct rpc_list_jobs)
RPC_CODEC(list_jobs_response, struct rpc_job_page)
RPC_CODEC(get_plan_request, struct rpc_get_plan)
RPC_CODEC(plan_batch_request, struct rpc_plan_batch)
RPC_CODEC(stream_plans_request, struct rpc_stream_plans)
RPC_CODEC(report_steps_request, struct rpc_report_steps)
RPC_CODEC(report_steps_response, uint64_t)
RPC_CODEC(describe_index_request, struct rpc_describe_index)
RPC_CODEC(index_stats, struct rpc_index_stats)
RPC_CODEC(health_check_response, enum rpc_health)

#undef RPC_CODEC

/* The name of a service. */
int codec_health_check_request_pack(struct arena *arena, const char *const *value,
                                    struct rpc_bytes *ret, struct skrull_error *err);
int codec_health_check_request_unpack(struct arena *arena, struct rpc_bytes bytes, const char **ret,
                                      struct skrull_error *err);

/* A StreamPlansResponse with rank `i_rank` of `plan`; or with the other events. Malloc'd, so that
 * it can outlive every arena: free(bytes.data). */
int codec_stream_plan_pack(const struct skrull_plan *plan, size_t i_rank, uint8_t **ret_bytes,
                           size_t *ret_len, struct skrull_error *err);
int codec_stream_heartbeat_pack(struct arena *arena, struct rpc_bytes *ret,
                                struct skrull_error *err);
int codec_stream_end_pack(struct arena *arena, enum rpc_end_reason reason, uint64_t next_step,
                          struct rpc_bytes *ret, struct skrull_error *err);
int codec_stream_event_unpack(struct arena *arena, struct rpc_bytes bytes,
                              struct rpc_stream_event *ret, struct skrull_error *err);

/* A whole Plan, or of some ranks by data_rank ([n_ranks], 0: all), to and from wire bytes. */
int codec_plan_pack(struct arena *arena, const struct skrull_plan *plan, const uint32_t *ranks,
                    size_t n_ranks, struct rpc_bytes *ret, struct skrull_error *err);
int codec_plan_unpack(struct rpc_bytes bytes, struct skrull_plan **ret_plan,
                      struct skrull_error *err);

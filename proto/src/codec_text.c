/*
 * C words to canonical JSON. Where the codec already packs a value for the wire, the wire bytes are
 * read back by descriptor and printed: one conversion serves both, at the price of a copy. Any
 * thread.
 */
#include "codec_text.h"

#include <stdint.h>

#include "arena.h"
#include "codec_job.h"
#include "codec_json.h"
#include "codec_plan.h"
#include "codec_wire.h"
#include "grpc/health/v1/health.pb-c.h"
#include "skrull/v1/job.pb-c.h"
#include "skrull/v1/plan.pb-c.h"
#include "skrull/v1/planner.pb-c.h"

#define TEXT_BUDGET ((size_t)4 << 30)

static int no_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for JSON");
}

static int print(const ProtobufCMessage *message, bool is_pretty, char **ret_text,
                 struct skrull_error *err)
{
    char *text = codec_json_encode(message, is_pretty);

    if (!text) {
        return no_memory(err);
    }
    *ret_text = text;
    return 0;
}

/* Wire bytes of a message to its JSON. */
static int print_wire(struct arena *arena, const ProtobufCMessageDescriptor *descriptor,
                      struct rpc_bytes bytes, bool is_pretty, char **ret_text,
                      struct skrull_error *err)
{
    ProtobufCMessage *message;
    int r = codec_wire_decode(arena, descriptor, bytes.data, bytes.len, &message, err);

    return r < 0 ? r : print(message, is_pretty, ret_text, err);
}

int codec_text_plan(const struct skrull_plan *plan, bool is_pretty, char **ret_text,
                    struct skrull_error *err)
{
    struct arena *arena = arena_new(TEXT_BUDGET);
    Skrull__V1__Plan *message;
    int r;

    if (!arena) {
        return no_memory(err);
    }
    r = codec_plan_encode(arena, plan, NULL, 0, &message, err);
    if (r == 0) {
        r = print(&message->base, is_pretty, ret_text, err);
    }
    arena_free(arena);
    return r;
}

int codec_text_rank_plan(const struct skrull_plan *plan, size_t i_rank, bool is_pretty,
                         char **ret_text, struct skrull_error *err)
{
    struct arena *arena = arena_new(TEXT_BUDGET);
    Skrull__V1__RankPlan *message;
    int r;

    if (!arena) {
        return no_memory(err);
    }
    r = codec_rank_plan_encode(arena, plan, i_rank, &message, err);
    if (r == 0) {
        r = print(&message->base, is_pretty, ret_text, err);
    }
    arena_free(arena);
    return r;
}

int codec_text_estimate(const struct skrull_estimate *estimate, bool is_pretty, char **ret_text,
                        struct skrull_error *err)
{
    Skrull__V1__Estimate message = SKRULL__V1__ESTIMATE__INIT;

    message.iteration_ns = estimate->iteration_ns;
    message.bound_ns = estimate->bound_ns;
    message.comp_ns = estimate->comp_ns;
    message.comm_ns = estimate->comm_ns;
    message.idle_ns = estimate->idle_ns;
    return print(&message.base, is_pretty, ret_text, err);
}

int codec_text_job(const struct skrull_job *job, bool is_pretty, char **ret_text,
                   struct skrull_error *err)
{
    struct arena *arena = arena_new(TEXT_BUDGET);
    Skrull__V1__Job *message;
    int r;

    if (!arena) {
        return no_memory(err);
    }
    r = codec_job_encode(arena, job, &message, err);
    if (r == 0) {
        r = print(&message->base, is_pretty, ret_text, err);
    }
    arena_free(arena);
    return r;
}

int codec_text_job_page(const struct rpc_job_page *page, bool is_pretty, char **ret_text,
                        struct skrull_error *err)
{
    struct arena *arena = arena_new(TEXT_BUDGET);
    struct rpc_bytes bytes;
    int r;

    if (!arena) {
        return no_memory(err);
    }
    r = codec_list_jobs_response_pack(arena, page, &bytes, err);
    if (r == 0) {
        r = print_wire(arena, &skrull__v1__list_jobs_response__descriptor, bytes, is_pretty,
                       ret_text, err);
    }
    arena_free(arena);
    return r;
}

int codec_text_index_stats(const struct rpc_index_stats *stats, bool is_pretty, char **ret_text,
                           struct skrull_error *err)
{
    struct arena *arena = arena_new(TEXT_BUDGET);
    struct rpc_bytes bytes;
    int r;

    if (!arena) {
        return no_memory(err);
    }
    r = codec_index_stats_pack(arena, stats, &bytes, err);
    if (r == 0) {
        r = print_wire(arena, &skrull__v1__index_stats__descriptor, bytes, is_pretty, ret_text,
                       err);
    }
    arena_free(arena);
    return r;
}

int codec_text_health(enum rpc_health health, bool is_pretty, char **ret_text,
                      struct skrull_error *err)
{
    struct arena *arena = arena_new(TEXT_BUDGET);
    struct rpc_bytes bytes;
    int r;

    if (!arena) {
        return no_memory(err);
    }
    r = codec_health_check_response_pack(arena, &health, &bytes, err);
    if (r == 0) {
        r = print_wire(arena, &grpc__health__v1__health_check_response__descriptor, bytes,
                       is_pretty, ret_text, err);
    }
    arena_free(arena);
    return r;
}

/* protobuf-c's strings are char *, though nothing here writes to them. */
static char *borrow(const char *text)
{
    union {
        const char *constant;
        char *plain;
    } borrowed = {.constant = text};

    return borrowed.plain;
}

static void fill_row(Skrull__V1__ComparisonRow *message,
                     const struct codec_text_comparison_row *row)
{
    skrull__v1__comparison_row__init(message);
    message->policy = borrow(row->policy);
    message->mean_ns = row->mean_ns;
    message->p50_ns = row->p50_ns;
    message->p95_ns = row->p95_ns;
    message->speedup = row->speedup;
    message->speedup_with_step = row->speedup_with_step;
    message->gap = row->gap;
    message->planning_ns = row->planning_ns;
    message->refused = borrow(row->refused);
}

int codec_text_comparison(const struct codec_text_comparison_row *rows, size_t n_rows,
                          bool is_pretty, char **ret_text, struct skrull_error *err)
{
    struct arena *arena = arena_new(TEXT_BUDGET);
    Skrull__V1__Comparison message = SKRULL__V1__COMPARISON__INIT;
    Skrull__V1__ComparisonRow *messages =
        arena ? ARENA_ARRAY(arena, Skrull__V1__ComparisonRow, n_rows) : NULL;
    int r;

    message.n_rows = n_rows;
    message.rows = arena ? ARENA_ARRAY(arena, Skrull__V1__ComparisonRow *, n_rows) : NULL;
    if (!messages || !message.rows) {
        arena_free(arena);
        return no_memory(err);
    }
    for (size_t i = 0; i < n_rows; i++) {
        fill_row(&messages[i], &rows[i]);
        message.rows[i] = &messages[i];
    }
    r = print(&message.base, is_pretty, ret_text, err);
    arena_free(arena);
    return r;
}

int codec_text_plan_parse(const char *text, size_t len, struct skrull_plan **ret_plan,
                          struct skrull_error *err)
{
    struct arena *arena = arena_new(TEXT_BUDGET);
    ProtobufCMessage *message;
    int r;

    if (!arena) {
        return no_memory(err);
    }
    r = codec_json_decode(arena, &skrull__v1__plan__descriptor, text, len, &message, err);
    if (r == 0) {
        r = codec_plan_decode((const Skrull__V1__Plan *)(const void *)message, ret_plan, err);
    }
    arena_free(arena);
    return r;
}

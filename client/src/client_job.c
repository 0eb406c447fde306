/* Jobs by RPC. A job that is handed out carries its arena behind it. Any thread. */
#include <skrull/client.h>

#include <stdlib.h>

#include "arena.h"
#include "codec_job.h"
#include "owned_job.h"
#include "unary.h"

#define PAGE_SIZE 100

struct owned_job {
    struct skrull_job job; /* first: skrull_job_free finds the rest by it */
    struct arena *arena;   /* what the job points to */
};

void skrull_job_free(struct skrull_job *job)
{
    struct owned_job *owned = (struct owned_job *)(void *)job;

    if (owned) {
        arena_free(owned->arena);
        free(owned);
    }
}

static int no_memory(struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a job");
}

int owned_job_decode(struct rpc_bytes reply, struct skrull_job **ret_job, struct skrull_error *err)
{
    struct owned_job *owned = calloc(1, sizeof(*owned));
    struct skrull_job *decoded;
    int r;

    if (!owned) {
        return no_memory(err);
    }
    owned->arena = arena_new(UNARY_REPLY_BUDGET);
    if (!owned->arena) {
        free(owned);
        return no_memory(err);
    }
    r = codec_job_unpack(owned->arena, reply.data, reply.len, &decoded, err);
    if (r < 0) {
        skrull_job_free(&owned->job);
        return r;
    }
    owned->job = *decoded;
    *ret_job = &owned->job;
    return 0;
}

/* Calls `method`, whose reply is a Job. */
static int call_for_job(struct skrull_client *client, const char *method, struct rpc_bytes request,
                        struct skrull_job **ret_job, struct skrull_error *err)
{
    struct rpc_bytes reply;
    int r = unary_call(client, method, request, &reply, err);

    if (r < 0) {
        return r;
    }
    r = owned_job_decode(reply, ret_job, err);
    unary_reply_free(&reply);
    return r;
}

int skrull_client_create_job(struct skrull_client *client, const struct skrull_job *job,
                             const char *request_id, struct skrull_job **ret_job,
                             struct skrull_error *err)
{
    struct arena *arena = arena_new(UNARY_REQUEST_BUDGET);
    union {
        const struct skrull_job *constant;
        struct skrull_job *plain; /* packing only reads it */
    } borrowed = {.constant = job};
    const struct rpc_create_job create = {.job = borrowed.plain,
                                          .request_id = request_id ? request_id : ""};
    struct rpc_bytes request;
    int r;

    if (!arena) {
        return no_memory(err);
    }
    r = codec_create_job_request_pack(arena, &create, &request, err);
    if (r == 0) {
        r = call_for_job(client, UNARY_METHOD("CreateJob"), request, ret_job, err);
    }
    arena_free(arena);
    return r;
}

int skrull_client_update_job(struct skrull_client *client, const struct skrull_job *job,
                             const struct skrull_update_options *options,
                             struct skrull_job **ret_job, struct skrull_error *err)
{
    static const struct skrull_update_options defaults = {0};
    struct arena *arena = arena_new(UNARY_REQUEST_BUDGET);
    union {
        const struct skrull_job *constant;
        struct skrull_job *plain; /* packing only reads it */
    } borrowed = {.constant = job};
    struct rpc_update_job update = {.job = borrowed.plain};
    struct rpc_bytes request;
    int r;

    if (!arena) {
        return no_memory(err);
    }
    options = options ? options : &defaults;
    update.mask = options->mask;
    update.n_mask = options->n_mask;
    update.expected_revision = options->expected_revision;
    update.from_step = options->from_step;
    r = codec_update_job_request_pack(arena, &update, &request, err);
    if (r == 0) {
        r = call_for_job(client, UNARY_METHOD("UpdateJob"), request, ret_job, err);
    }
    arena_free(arena);
    return r;
}

int skrull_client_get_job(struct skrull_client *client, const char *name,
                          struct skrull_job **ret_job, struct skrull_error *err)
{
    struct arena *arena = arena_new(UNARY_REQUEST_BUDGET);
    const struct rpc_name get = {.name = name};
    struct rpc_bytes request;
    int r;

    if (!arena) {
        return no_memory(err);
    }
    r = codec_get_job_request_pack(arena, &get, &request, err);
    if (r == 0) {
        r = call_for_job(client, UNARY_METHOD("GetJob"), request, ret_job, err);
    }
    arena_free(arena);
    return r;
}

int skrull_client_delete_job(struct skrull_client *client, const char *name,
                             struct skrull_error *err)
{
    struct arena *arena = arena_new(UNARY_REQUEST_BUDGET);
    const struct rpc_name delete = {.name = name};
    struct rpc_bytes request, reply;
    int r;

    if (!arena) {
        return no_memory(err);
    }
    r = codec_delete_job_request_pack(arena, &delete, &request, err);
    if (r == 0) {
        r = unary_call(client, UNARY_METHOD("DeleteJob"), request, &reply, err);
    }
    if (r == 0) {
        unary_reply_free(&reply);
    }
    arena_free(arena);
    return r;
}

/* One page, in `arena`. */
static int list_page(struct skrull_client *client, struct arena *arena, const char *token,
                     struct rpc_job_page *ret_page, struct skrull_error *err)
{
    const struct rpc_list_jobs list = {.page_size = PAGE_SIZE, .page_token = token};
    struct rpc_bytes request, reply;
    int r = codec_list_jobs_request_pack(arena, &list, &request, err);

    if (r < 0) {
        return r;
    }
    r = unary_call(client, UNARY_METHOD("ListJobs"), request, &reply, err);
    if (r < 0) {
        return r;
    }
    r = codec_list_jobs_response_unpack(arena, reply, ret_page, err);
    unary_reply_free(&reply);
    return r;
}

int skrull_client_list_jobs(struct skrull_client *client,
                            int (*fn)(void *arg, const struct skrull_job *job), void *arg,
                            struct skrull_error *err)
{
    struct rpc_job_page page = {.next_page_token = ""};
    struct arena *arena = NULL; /* of the page at hand, which holds the next one's token */
    int r = 0;
    bool is_over = false;

    while (r == 0 && !is_over) {
        struct arena *next = arena_new(UNARY_REPLY_BUDGET);

        r = next ? list_page(client, next, page.next_page_token, &page, err) : no_memory(err);
        arena_free(arena);
        arena = next;
        for (size_t i = 0; r == 0 && !is_over && i < page.n_jobs; i++) {
            is_over = fn(arg, page.jobs[i]) != 0;
        }
        if (r == 0 && !page.next_page_token[0]) {
            is_over = true;
        }
    }
    arena_free(arena);
    return r;
}

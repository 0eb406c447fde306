/*
 * ListJobs: a page of the table. A page is as large as asked for or, where its jobs have many data
 * sets, as fits into a message that any client takes.
 */
#include "job/registry.h"
#include "rpc/call.h"
#include "rpc/handlers.h"
#include "rpc/rpc_ctx.h"

#include "arena.h"

#define MAX_REPLY_BYTES ((size_t)3 << 20) /* clients take 4 MiB by default */
#define PAGE_BUDGET_BYTES ((size_t)64 << 20)

static int pack(const struct registry *registry, const struct registry_page *page,
                struct arena *arena, struct rpc_bytes *ret, struct skrull_error *err)
{
    struct rpc_job_page reply = {.n_jobs = page->n, .next_page_token = page->next_page_token};

    reply.jobs = ARENA_ARRAY(arena, struct skrull_job *, page->n);
    if (!reply.jobs) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    for (size_t i = 0; i < page->n; i++) {
        const struct registry_entry *entry = registry_at(registry, page->first + i);

        /* The codec only reads them, but its struct is the one that decoding fills. */
        reply.jobs[i] = (struct skrull_job *)(uintptr_t)entry->spec;
    }
    return codec_list_jobs_response_pack(arena, &reply, ret, err);
}

static void reply_page(const struct rpc_ctx *ctx, struct call *call,
                       const struct rpc_list_jobs *request)
{
    struct skrull_error err = {0};
    uint64_t page_size = request->page_size;

    for (;;) {
        struct arena *arena = arena_new(PAGE_BUDGET_BYTES);
        struct registry_page page = {.n = 0};
        struct rpc_bytes reply = {NULL, 0};
        int code = SKRULL_ERR_RESOURCE_EXHAUSTED;

        if (arena) {
            code = registry_page(ctx->registry, page_size, request->page_token, &page, &err);
        }
        if (code == 0) {
            code = pack(ctx->registry, &page, arena, &reply, &err);
        }
        if (page.n > 1 && (code == SKRULL_ERR_RESOURCE_EXHAUSTED || reply.len > MAX_REPLY_BYTES)) {
            page_size = page.n / 2;
        } else if (code < 0) {
            err.code = code;
            call_fail(call, &err);
            arena_free(arena);
            return;
        } else {
            call_reply(call, reply);
            arena_free(arena);
            return;
        }
        arena_free(arena);
    }
}

void rpc_list_jobs(struct rpc_ctx *ctx, struct call *call)
{
    struct rpc_list_jobs request;
    struct skrull_error err = {0};

    if (codec_list_jobs_request_unpack(call_arena(call), call_request(call), &request, &err) < 0) {
        call_fail(call, &err);
        return;
    }
    reply_page(ctx, call, &request);
}

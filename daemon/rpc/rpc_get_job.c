/* GetJob: one job of the table. */
#include "job/registry.h"
#include "rpc/call.h"
#include "rpc/handlers.h"
#include "rpc/rpc_ctx.h"

#include "codec_job.h"

void rpc_get_job(struct rpc_ctx *ctx, struct call *call)
{
    struct arena *arena = call_arena(call);
    struct skrull_error err = {0};
    struct registry_entry *entry;
    struct rpc_name request;
    uint8_t *bytes;
    size_t len;
    int code;

    code = codec_get_job_request_unpack(arena, call_request(call), &request, &err);
    if (code == 0) {
        code = registry_find(ctx->registry, request.name, &entry, &err);
    }
    if (code == 0) {
        code = codec_job_pack(arena, entry->spec, &bytes, &len, &err);
    }
    if (code < 0) {
        call_fail(call, &err);
        return;
    }
    call_reply(call, (struct rpc_bytes){bytes, len});
}

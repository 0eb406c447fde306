/*
 * Unary calls. Each has a completion queue of its own and plucks its one tag from it, so that any
 * number of threads can call at once and share nothing but the channel, which gRPC guards itself.
 */
#include "unary.h"

#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "tag_order.h"

void unary_reply_free(struct rpc_bytes *reply)
{
    union {
        const uint8_t *constant;
        void *plain;
    } data = {.constant = reply->data};

    free(data.plain);
    reply->data = NULL;
    reply->len = 0;
}

/* A deadline that passed while nothing was connected says that nobody is there. */
static int name_timeout(struct skrull_client *client, int code, struct skrull_error *err)
{
    int64_t ms = client->timeout_ns / 1000000;

    if (code != SKRULL_ERR_DEADLINE_EXCEEDED) {
        return code;
    }
    if (grpc_channel_check_connectivity_state(client->channel, 0) != GRPC_CHANNEL_READY) {
        return skrull_error_set(
            err, SKRULL_ERR_UNAVAILABLE,
            "skrulld at %s is not available: no connection within %lld ms; is it "
            "running? (--server and SKRULL_SERVER name another)",
            client->server, (long long)ms);
    }
    return skrull_error_set(err, code, "no answer from skrulld at %s within %lld ms",
                            client->server, (long long)ms);
}

static int take_reply(struct skrull_client *client, struct call *call, struct rpc_bytes *ret_reply,
                      struct skrull_error *err)
{
    uint8_t *bytes;
    size_t len;
    int r = call_result(call, client->server, err);

    if (r < 0) {
        return name_timeout(client, r, err);
    }
    r = call_take_message(call, &bytes, &len, err);
    if (r < 0) {
        return r;
    }
    if (!bytes) {
        return skrull_error_set(err, SKRULL_ERR_INTERNAL,
                                "skrulld at %s answered OK without a message", client->server);
    }
    *ret_reply = (struct rpc_bytes){.data = bytes, .len = len};
    return 0;
}

int unary_call(struct skrull_client *client, const char *method, struct rpc_bytes request,
               struct rpc_bytes *ret_reply, struct skrull_error *err)
{
    grpc_completion_queue *cq = grpc_completion_queue_create_for_pluck(NULL);
    struct call call;
    int r;

    call_init(&call, client->channel, cq, method, call_deadline(client->timeout_ns));
    r = call_start_unary(&call, request, &call, err);
    if (r == 0) {
        (void)grpc_completion_queue_pluck(cq, &call, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        tag_take_back(&call);
        r = take_reply(client, &call, ret_reply, err);
    }
    call_deinit(&call);
    grpc_completion_queue_shutdown(cq);
    grpc_completion_queue_destroy(cq); /* its only tag has been plucked */
    return r;
}

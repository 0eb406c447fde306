/* What a client is, and its unary calls: request bytes out, reply bytes in. */
#pragma once

#include <stdint.h>

#include <grpc/grpc.h>

#include <skrull/client.h>

#include "address.h"
#include "codec_rpc.h"

#define UNARY_METHOD(name) "/skrull.v1.PlannerService/" name
#define UNARY_REPLY_BUDGET ((size_t)512 << 20) /* bytes that a decoded reply may take */
#define UNARY_REQUEST_BUDGET ((size_t)64 << 20)

struct skrull_client {
    char server[ADDRESS_MAX];
    grpc_channel *channel;
    int64_t timeout_ns;
};

/*
 * Sends `request` and waits for the reply, at most the client's timeout. *ret_reply is malloc'd:
 * free its data. UNAVAILABLE also where the time ran out before a connection stood. Any thread.
 */
int unary_call(struct skrull_client *client, const char *method, struct rpc_bytes request,
               struct rpc_bytes *ret_reply, struct skrull_error *err);

void unary_reply_free(struct rpc_bytes *reply);

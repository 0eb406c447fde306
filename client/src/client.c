/*
 * A client: its address, its channel, and the health of what is there. gRPC is initialised once a
 * client (it counts). Threading: the channel is gRPC's own matter, the rest is immutable after
 * skrull_client_new.
 */
#include <skrull/client.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "channel.h"
#include "unary.h"

#define DEFAULT_TIMEOUT_MS 10000
#define MAX_TIMEOUT_MS ((int64_t)24 * 3600 * 1000)

static int choose_address(const struct skrull_client_options *options,
                          char ret_address[ADDRESS_MAX], struct skrull_error *err)
{
    const struct address_environment environment = {
        .server = getenv("SKRULL_SERVER"),
        .xdg_runtime_dir = getenv("XDG_RUNTIME_DIR"),
        .uid = (unsigned)geteuid(),
    };

    if (!options || !options->server) {
        return address_default(&environment, ret_address, err);
    }
    if (strlen(options->server) >= ADDRESS_MAX) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "server address %.80s...: longer than %d bytes", options->server,
                                ADDRESS_MAX - 1);
    }
    memcpy(ret_address, options->server, strlen(options->server) + 1);
    return 0;
}

int skrull_client_new(const struct skrull_client_options *options,
                      struct skrull_client **ret_client, struct skrull_error *err)
{
    int64_t timeout_ms = options && options->timeout_ms ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
    char server[ADDRESS_MAX], target[ADDRESS_MAX];
    struct skrull_client *client;
    int r;

    if (timeout_ms < 0 || timeout_ms > MAX_TIMEOUT_MS) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "timeout_ms: %lld is out of range, 0 to %lld are allowed",
                                (long long)timeout_ms, (long long)MAX_TIMEOUT_MS);
    }
    r = choose_address(options, server, err);
    if (r < 0) {
        return r;
    }
    r = address_to_target(server, target, err);
    if (r < 0) {
        return r;
    }
    client = calloc(1, sizeof(*client));
    if (!client) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a client");
    }
    memcpy(client->server, server, sizeof(server));
    client->timeout_ns = timeout_ms * 1000000;
    grpc_init();
    client->channel = channel_new(target);
    *ret_client = client;
    return 0;
}

void skrull_client_free(struct skrull_client *client)
{
    if (!client) {
        return;
    }
    grpc_channel_destroy(client->channel);
    free(client);
    grpc_shutdown();
}

const char *skrull_client_server(const struct skrull_client *client)
{
    return client->server;
}

int skrull_client_health(struct skrull_client *client, struct skrull_error *err)
{
    struct arena *arena = arena_new(UNARY_REQUEST_BUDGET);
    const char *whole_server = "";
    enum rpc_health health = RPC_HEALTH_UNKNOWN;
    struct rpc_bytes request, reply = {0};
    int r;

    if (!arena) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for a call");
    }
    r = codec_health_check_request_pack(arena, &whole_server, &request, err);
    if (r == 0) {
        r = unary_call(client, "/grpc.health.v1.Health/Check", request, &reply, err);
    }
    if (r == 0) {
        r = codec_health_check_response_unpack(arena, reply, &health, err);
        unary_reply_free(&reply);
    }
    arena_free(arena);
    if (r < 0) {
        return r;
    }
    return health == RPC_HEALTH_SERVING ? 0 : SKRULL_NOT_SERVING;
}

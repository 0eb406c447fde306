/*
 * The channel's arguments. Each differs from gRPC's default for a reason that stands beside it. Any
 * thread.
 */
#include "channel.h"

#include <grpc/grpc_security.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The reply of GetPlan has up to 3 MiB, that of ListJobs more. */
#define MAX_RECEIVE_BYTES (64 << 20)

struct setting {
    const char *key;
    int value;
};

static const struct setting settings[] = {
    {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, MAX_RECEIVE_BYTES},
    /* The probe widens the window to megabytes a stream: plans nobody has read would pile up here.
     */
    {GRPC_ARG_HTTP2_BDP_PROBE, 0},
    /* Plans come from the machine that was named, whatever http_proxy says. */
    {GRPC_ARG_ENABLE_HTTP_PROXY, 0},
    /* Else two clients in one process share a connection, and its fate. */
    {GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1},
    /* A dead daemon is noticed within 40 s, also where no packet says so. */
    {GRPC_ARG_KEEPALIVE_TIME_MS, 30000},
    {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000},
    {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0}, /* an idle stream is watched too */
    /* The stream has its own backoff, which resets this one. */
    {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100},
    {GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 3000},
    {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000}, /* what one attempt to connect may take */
    /* No DNS TXT queries, no configuration by DNS. */
    {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1},
    /* Retries are the stream's, which knows where to resume. */
    {GRPC_ARG_ENABLE_RETRIES, 0},
};

grpc_channel *channel_new(const char *target)
{
    grpc_arg args[COUNT(settings)];
    const grpc_channel_args list = {.num_args = COUNT(settings), .args = args};
    grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
    grpc_channel *channel;

    for (size_t i = 0; i < COUNT(settings); i++) {
        /* gRPC's keys are char *, though it only reads them. */
        union {
            const char *constant;
            char *plain;
        } key = {.constant = settings[i].key};

        args[i] = (grpc_arg){
            .type = GRPC_ARG_INTEGER, .key = key.plain, .value = {.integer = settings[i].value}};
    }
    channel = grpc_channel_create(target, credentials, &list);
    grpc_channel_credentials_release(credentials);
    return channel;
}

/* A channel to the daemon with the settings that this project's traffic needs. */
#pragma once

#include <grpc/grpc.h>

/* A new channel to a gRPC target (address_to_target); connects at the first call. Never NULL: gRPC
 * gives a lame channel instead. grpc_init must have been called. */
grpc_channel *channel_new(const char *target);

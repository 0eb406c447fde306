/* One request or reply from and to wire bytes, every string and list of it within a limit. */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "codec_rpc.h"

/* INVALID_ARGUMENT where a string or a list of the message is longer than codec_rpc_limits.def
 * allows. Messages in it are not looked into. */
int codec_rpc_check(const ProtobufCMessage *message, struct skrull_error *err);

/* Decodes in `arena`, as codec_wire_decode, and checks. */
int codec_rpc_decode(struct arena *arena, const ProtobufCMessageDescriptor *descriptor,
                     struct rpc_bytes bytes, ProtobufCMessage **ret_message,
                     struct skrull_error *err);

/* Decodes into `message`, a `Skrull__V1__X *`, by the descriptor of X. */
#define CODEC_RPC_DECODE(arena, name, bytes, message, err)                                         \
    codec_rpc_decode((arena), &name##__descriptor, (bytes), (ProtobufCMessage **)&(message), (err))

int codec_rpc_encode(struct arena *arena, const ProtobufCMessage *message, struct rpc_bytes *ret,
                     struct skrull_error *err);

/* RESOURCE_EXHAUSTED: "message: out of memory". */
int codec_rpc_no_memory(struct skrull_error *err);

/* INVALID_ARGUMENT unless `message` is there. */
int codec_rpc_require(const char *field, const void *message, struct skrull_error *err);

/*
 * Errors -> gRPC status. Codes are the canonical ones, negated. Clients refuse trailers over 8 KiB,
 * and gRPC writes a byte that is not printable ASCII as three; an error's message has a fixed size
 * well below that, which the assertion below holds to.
 */
#include "rpc/status.h"

#include <assert.h>
#include <string.h>

static_assert(SKRULL_ERROR_MESSAGE_SIZE * 3 <= 4096, "messages fit into trailers");

grpc_status_code status_code(const struct skrull_error *err)
{
    if (err->code > SKRULL_ERR_CANCELLED || err->code < SKRULL_ERR_UNAUTHENTICATED) {
        return GRPC_STATUS_INTERNAL;
    }
    return (grpc_status_code)-err->code;
}

grpc_slice status_details(const struct skrull_error *err)
{
    const char *message = err->message[0] != '\0' ? err->message : skrull_error_text(err->code);

    return grpc_slice_from_copied_buffer(message, strnlen(message, SKRULL_ERROR_MESSAGE_SIZE));
}

/*
 * Errors -> gRPC status. Codes are the canonical ones, negated. Clients refuse trailers over 8 KiB
 * (the call then ends with a status that tells nothing), gRPC writes a byte of the message that is
 * not printable ASCII as three, and metadata as base64: both parts have a bound that the assertion
 * below adds up.
 */
#include "rpc/status.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "arena.h"

#include "codec_status.h"

#define MAX_TRAILERS 8192
#define MAX_OTHERS 1024 /* names and sizes of the entries, grpc-status */
#define MAX_DETAILS 3072
#define DETAILS_BUDGET ((size_t)64 << 10)
#define RETRY_MS 1000 /* a restarted daemon is back by then */

static_assert(SKRULL_ERROR_MESSAGE_SIZE * 3 + MAX_DETAILS / 3 * 4 + MAX_OTHERS <= MAX_TRAILERS,
              "errors fit into trailers");

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

static bool is_for_now(const struct skrull_error *err)
{
    return err->reason == SKRULL_REASON_DRAINING || err->reason == SKRULL_REASON_BUSY;
}

size_t status_metadata(const struct skrull_error *err, const char *method,
                       grpc_metadata *ret_metadata)
{
    const struct rpc_status status = {.code = status_code(err),
                                      .method = method,
                                      .retry_ms = is_for_now(err) ? RETRY_MS : 0,
                                      .max_bytes = MAX_DETAILS};
    struct arena *arena = arena_new(DETAILS_BUDGET);
    struct rpc_bytes bytes;
    size_t n = 0;

    if (arena && codec_status_pack(arena, err, &status, &bytes, NULL) == 0) {
        memset(ret_metadata, 0, sizeof(*ret_metadata));
        ret_metadata->key = grpc_slice_from_static_string("grpc-status-details-bin");
        ret_metadata->value = grpc_slice_from_copied_buffer((const char *)bytes.data, bytes.len);
        n = 1;
    }
    arena_free(arena);
    return n;
}

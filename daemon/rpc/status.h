/* Errors -> gRPC status. */
#pragma once

#include <grpc/slice.h>
#include <grpc/status.h>

#include <skrull/error.h>

/* The status of an error; what is no `enum skrull_err` is INTERNAL. */
grpc_status_code status_code(const struct skrull_error *err);

/* The message as a slice (unref it): never empty, and cut so that it fits into trailers of 8 KiB
 * even where each byte takes three. */
grpc_slice status_details(const struct skrull_error *err);

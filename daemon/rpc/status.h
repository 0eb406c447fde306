/* Errors -> gRPC status. */
#pragma once

#include <stddef.h>

#include <grpc/grpc.h>

#include <skrull/error.h>

/* The status of an error; what is no `enum skrull_err` is INTERNAL. */
grpc_status_code status_code(const struct skrull_error *err);

/* The message as a slice (unref it): never empty, and cut so that it fits into trailers of 8 KiB
 * even where each byte takes three. */
grpc_slice status_details(const struct skrull_error *err);

/* The same for programs, as trailing metadata: a google.rpc.Status that names `method` ("GetPlan";
 * nullable). Returns its entries: 1 (unref its value), or 0 where memory ran out. */
size_t status_metadata(const struct skrull_error *err, const char *method,
                       grpc_metadata *ret_metadata);

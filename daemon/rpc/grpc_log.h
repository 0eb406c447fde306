/* gRPC's own lines in the daemon's log. */
#pragma once

#include <stdbool.h>

/* To be called before grpc_init. Where not `is_verbose`, gRPC's lines stay out: why a start fails
 * is said by those who start. */
void grpc_log_install(bool is_verbose);

/* From then on errors of gRPC are warnings; `is_verbose`: the rest is debug. */
void grpc_log_show_errors(bool is_verbose);

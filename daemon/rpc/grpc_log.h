/* gRPC's own lines in the daemon's log. */
#pragma once

/* To be called before grpc_init. Errors of gRPC are warnings here; `is_verbose`: the rest as debug.
 */
void grpc_log_install(int is_verbose);

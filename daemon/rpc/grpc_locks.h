/* gRPC's locks, as they are built here. */
#pragma once

/* Turns off the search for deadlocks that a build with assertions makes at every lock. Where there
 * is none, nothing happens. Before gRPC's threads exist. */
void grpc_locks_quicken(void);

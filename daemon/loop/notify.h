/* Tells the service manager how the daemon is: one datagram to $NOTIFY_SOCKET, no library needed.
 */
#pragma once

#include <stdint.h>

#include <skrull/error.h>

/*
 * Sends `state` ("READY=1", "STOPPING=1", "WATCHDOG=1") to the socket at `path`, "@name" being an
 * abstract one. NULL or "": nobody listens, which is fine. INVALID_ARGUMENT: not a path;
 * UNAVAILABLE: it could not be sent.
 */
int notify_send(const char *path, const char *state, struct skrull_error *err);

/* How often the manager wants WATCHDOG=1, in ms: half of $WATCHDOG_USEC where $WATCHDOG_PID is
 * absent or `pid`; 0: never. */
uint64_t notify_watchdog_ms(const char *usec, const char *watchdog_pid, int64_t pid);

/*
 * A CUDA runtime and an NCCL for tests on machines without a GPU: linked in place of both, with
 * each rank a thread of one process. What is put on streams runs only when every thread waits for
 * some of it, in an order drawn from a seed and bounded by nothing but streams, events and matching
 * NCCL operations. So a run is the same for the same seed, host code never gets what it did not
 * wait for, and 64 seeds show 64 legal orders.
 *
 * What it catches. Memory of the device is poisoned with NaN when allocated, out of the host's
 * reach (a fault) but while streams run, and checked to be a whole allocation's part in every copy,
 * operator and message; copies take page-locked memory of the host only. Buffers that receive are
 * poisoned when an operation starts and filled at some later time. A group of NCCL operations is
 * put on its stream only once its communicator was asked whether it is in progress. Messages that
 * do not match, members that never come and streams that wait for each other are reported.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ops;

/* Starts anew with `n_threads` threads of ranks, which are to call fake_thread_end, and as many
 * devices; 0 devices: every call fails as without a driver. */
void fake_begin(uint64_t seed, uint32_t n_threads, uint32_t n_devices);
/* Frees everything; what was left over by those who allocated it is reported. Returns the reports,
 * empty without any, valid until the next fake_begin. */
const char *fake_end(void);
void fake_thread_end(void);

/* Reports so far. */
const char *fake_reports(void);

/* Adds one, in calls only. */
void fake_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Work that was run, of all streams. */
uint64_t fake_n_run(void);

/* Puts a call on a stream. `params` is copied; `call` runs with the device's memory at hand. */
void fake_stream_call(void *stream, const char *name, void (*call)(const void *params),
                      const void *params, size_t bytes);

/* Are [at, at + bytes) within one allocation of a device? Reports where not. In calls only. */
bool fake_check_device(const char *what, const void *at, size_t bytes);

/* The next asynchronous error of communicators of device `device`: an ncclResult_t. */
void fake_nccl_break(uint32_t device, int result);

/* Whose operators they are from now on: "cpu" (before any call), or another backend on memory of
 * the host, as "shim" in programs that link it. */
void fake_use(const char *host_backend);

/* Operators as work of fake streams, as ops_find("cuda") finds them. */
const struct ops *fake_ops(void);

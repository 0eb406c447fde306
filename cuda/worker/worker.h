/* What both kinds of worker do with a plan and a stream. */
#pragma once

#include <skrull/client.h>

#include "options.h"

enum worker_exit { WORKER_DONE, WORKER_FAILED, WORKER_USAGE, WORKER_MISSING, WORKER_UNREACHABLE };

/* For them to be delivered, after the stream failed or without a daemon. */
#define LAST_REPORTS_MS 5000

/* Says what went wrong, once; returns the exit status for it. */
enum worker_exit worker_exit_of(const struct skrull_error *err);

int64_t worker_now_ns(void);

/* Can this plan of one rank be run? INVALID_ARGUMENT names what it breaks. Its digest has been
 * recomputed by libskrull. */
int worker_check_plan(const struct skrull_plan *plan, uint32_t data_rank, struct skrull_error *err);

/* One line a step, at once: tests and people read it while the worker runs. `more` (nullable) is
 * put at its end. */
int worker_print_plan(const struct skrull_plan *plan, const char *digest, const char *more,
                      struct skrull_error *err);

/* Opens this rank's stream. */
int worker_open_stream(struct skrull_client *client, const struct worker_options *options,
                       uint32_t data_rank, struct skrull_stream **ret_stream,
                       struct skrull_error *err);

/* Reports are figures for people. A worker that could do without its daemon does not wait for ever
 * to deliver them. */
int worker_flush_reports(struct skrull_stream *stream, const struct worker_options *options,
                         struct skrull_error *err);

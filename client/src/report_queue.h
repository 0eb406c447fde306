/* Reports that the daemon has not yet acknowledged, in the order they were made. The stream's lock
 * guards it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/client.h>

struct queued_report {
    uint64_t step;
    char digest[SKRULL_DIGEST_HEX_SIZE];
    int64_t elapsed_ns;
    uint64_t peak_bytes;
    struct skrull_micro_batch_times *micro_batches; /* [n_micro_batches]; the queue owns its copy */
    size_t n_micro_batches;
};

/* Undelivered reports are bounded too: a daemon that is away for weeks must not fill the memory. */
#define REPORT_QUEUE_MAX ((size_t)1 << 20)

struct report_queue {
    struct queued_report *reports; /* [capacity], a ring */
    size_t capacity, first, n_reports;
};

void report_queue_deinit(struct report_queue *queue);

/* Appends a copy. RESOURCE_EXHAUSTED: REPORT_QUEUE_MAX wait already, or out of memory. */
int report_queue_push(struct report_queue *queue, const struct queued_report *report,
                      struct skrull_error *err);

/* The i-th oldest, i < n_reports; borrowed until the next push or drop. */
const struct queued_report *report_queue_at(const struct report_queue *queue, size_t i);

/* Forgets the `n` oldest: they were delivered. */
void report_queue_drop(struct report_queue *queue, size_t n);

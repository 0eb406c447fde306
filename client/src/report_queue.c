/* A ring of reports that grows up to a bound. At least once: a report leaves only when it was
 * acknowledged. */
#include "report_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 64

void report_queue_deinit(struct report_queue *queue)
{
    report_queue_drop(queue, queue->n_reports);
    free(queue->reports);
    *queue = (struct report_queue){0};
}

static int grow(struct report_queue *queue, struct skrull_error *err)
{
    size_t capacity = queue->capacity ? queue->capacity * 2 : FIRST_CAPACITY;
    struct queued_report *reports = calloc(capacity, sizeof(reports[0]));

    if (!reports) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for reports");
    }
    for (size_t i = 0; i < queue->n_reports; i++) {
        reports[i] = *report_queue_at(queue, i);
    }
    free(queue->reports);
    queue->reports = reports;
    queue->capacity = capacity;
    queue->first = 0;
    return 0;
}

/* There is room. */
static int append(struct report_queue *queue, const struct queued_report *report,
                  struct skrull_error *err)
{
    size_t size = report->n_micro_batches * sizeof(report->micro_batches[0]);
    struct skrull_micro_batch_times *times = size ? malloc(size) : NULL;
    struct queued_report *place =
        &queue->reports[(queue->first + queue->n_reports) % queue->capacity];

    if (size && !times) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory for reports");
    }
    if (size) {
        memcpy(times, report->micro_batches, size);
    }
    *place = *report;
    place->micro_batches = times;
    queue->n_reports++;
    return 0;
}

int report_queue_push(struct report_queue *queue, const struct queued_report *report,
                      struct skrull_error *err)
{
    if (queue->n_reports == REPORT_QUEUE_MAX) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "%zu reports wait for the daemon, which is the limit; wait by "
                                "skrull_stream_flush",
                                REPORT_QUEUE_MAX);
    }
    if (queue->n_reports == queue->capacity) {
        int r = grow(queue, err);

        if (r < 0) {
            return r;
        }
    }
    return append(queue, report, err);
}

const struct queued_report *report_queue_at(const struct report_queue *queue, size_t i)
{
    assert(i < queue->n_reports);
    return &queue->reports[(queue->first + i) % queue->capacity];
}

void report_queue_drop(struct report_queue *queue, size_t n)
{
    assert(n <= queue->n_reports);
    for (size_t i = 0; i < n; i++) {
        free(queue->reports[(queue->first + i) % queue->capacity].micro_batches);
    }
    if (n) {
        queue->first = (queue->first + n) % queue->capacity;
        queue->n_reports -= n;
    }
}

/*
 * gRPC completion queue -> loop. The only file that knows both libraries.
 *
 * A thread blocks in grpc_completion_queue_next and appends each event's tag to a list under a
 * lock; it wakes the loop only when the list was empty, so a burst costs one wake-up. The loop
 * takes events in order, at most TURN_EVENTS a turn, so that timers, signals and finished work have
 * their share whatever the clients do. Events are never handled on gRPC's thread: it also accepts
 * connections and answers pings.
 *
 * At the end the queue is shut down first; the thread passes on the remaining events and returns,
 * and the list is emptied once more before the queue is destroyed.
 */
#include "rpc/cq.h"

#include <stdlib.h>

#include <grpc/grpc.h>
#include <grpc/support/time.h>
#include <uv.h>

#include "loop/loop.h"
#include "tag_order.h"

#define TURN_EVENTS 256

struct cq {
    uv_async_t wake; /* first: freed with the handle */
    grpc_completion_queue *queue;
    uv_thread_t thread;
    uv_mutex_t lock;             /* guards the list */
    struct cq_tag *first, *last; /* events that the loop has not seen */
};

static void append(struct cq *cq, struct cq_tag *tag)
{
    bool was_empty;

    tag->next = NULL;
    uv_mutex_lock(&cq->lock);
    was_empty = !cq->first;
    if (was_empty) {
        cq->first = tag;
    } else {
        cq->last->next = tag;
    }
    cq->last = tag;
    uv_mutex_unlock(&cq->lock);
    if (was_empty) {
        (void)uv_async_send(&cq->wake);
    }
}

static struct cq_tag *take(struct cq *cq)
{
    struct cq_tag *tag;

    uv_mutex_lock(&cq->lock);
    tag = cq->first;
    if (tag) {
        cq->first = tag->next;
        if (!cq->first) {
            cq->last = NULL;
        }
    }
    uv_mutex_unlock(&cq->lock);
    return tag;
}

static void run(void *arg)
{
    struct cq *cq = (struct cq *)arg;

    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(cq->queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
        struct cq_tag *tag;

        if (event.type == GRPC_QUEUE_SHUTDOWN) {
            return;
        }
        if (event.type != GRPC_OP_COMPLETE) {
            continue;
        }
        tag_take_back(event.tag);
        tag = (struct cq_tag *)event.tag;
        tag->ok = event.success != 0;
        append(cq, tag);
    }
}

static void on_wake(uv_async_t *wake)
{
    struct cq *cq = (struct cq *)wake->data;

    for (int i = 0; i < TURN_EVENTS; i++) {
        struct cq_tag *tag = take(cq);

        if (!tag) {
            return;
        }
        tag->fn(tag, tag->ok); /* may free the tag */
    }
    (void)uv_async_send(&cq->wake); /* the rest in the next turn */
}

static void on_closed(uv_handle_t *wake)
{
    free(wake->data);
}

int cq_new(struct loop *loop, struct cq **ret_cq, struct skrull_error *err)
{
    struct cq *cq = calloc(1, sizeof(*cq));
    int code;

    if (!cq) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "completion queue: out of memory");
    }
    code = uv_async_init(loop_uv(loop), &cq->wake, on_wake);
    if (code < 0) {
        free(cq);
        return loop_error(err, code, "completion queue");
    }
    cq->wake.data = cq;
    code = uv_mutex_init(&cq->lock);
    if (code < 0) {
        goto close_wake;
    }
    cq->queue = grpc_completion_queue_create_for_next(NULL);
    code = uv_thread_create(&cq->thread, run, cq);
    if (code < 0) {
        goto destroy_queue;
    }
    *ret_cq = cq;
    return 0;

destroy_queue:
    grpc_completion_queue_shutdown(cq->queue);
    grpc_completion_queue_destroy(cq->queue);
    uv_mutex_destroy(&cq->lock);
close_wake:
    uv_close((uv_handle_t *)&cq->wake, on_closed);
    return loop_error(err, code, "completion queue");
}

struct grpc_completion_queue *cq_queue(struct cq *cq)
{
    return cq->queue;
}

void cq_free(struct cq *cq)
{
    struct cq_tag *tag;

    if (!cq) {
        return;
    }
    grpc_completion_queue_shutdown(cq->queue);
    (void)uv_thread_join(&cq->thread);
    while ((tag = take(cq)) != NULL) {
        tag->fn(tag, tag->ok);
    }
    grpc_completion_queue_destroy(cq->queue);
    uv_mutex_destroy(&cq->lock);
    uv_close((uv_handle_t *)&cq->wake, on_closed);
}

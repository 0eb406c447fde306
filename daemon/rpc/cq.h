/*
 * The bridge between gRPC's completion queue and the loop: gRPC exposes no descriptor to poll, so a
 * thread waits on the queue and hands each event to the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <skrull/error.h>

struct cq;
struct grpc_completion_queue;
struct loop;

/* One operation under way; embedded in what it is about, and its address is gRPC's tag. fn(tag, ok)
 * runs on the loop's thread. */
struct cq_tag {
    void (*fn)(struct cq_tag *tag, bool ok);
    bool ok;             /* the bridge's */
    struct cq_tag *next; /* the bridge's */
};

/* What a tag is embedded in. */
#define CQ_OWNER(tag, type, member) ((type *)(void *)((char *)(tag)-offsetof(type, member)))

int cq_new(struct loop *loop, struct cq **ret_cq, struct skrull_error *err);

/* For gRPC's functions; lives as long as the bridge. */
struct grpc_completion_queue *cq_queue(struct cq *cq);

/* Shuts the queue down, delivers what is left in it, joins the thread. No new operation may begin,
 * and no server may use the queue any more. NULL is fine. */
void cq_free(struct cq *cq);

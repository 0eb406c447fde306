/*
 * A queue whose items run one after another, in order, on a thread of its own: the store's.
 * Planning that fills the pool does not delay it.
 */
#pragma once

#include "loop/loop.h"

struct serial;

/* Embedded in what it is about; its owner's until `done`. Set work, done and arg. */
struct serial_item {
    loop_fn work; /* on the queue's thread */
    loop_fn done; /* then on the loop's thread */
    void *arg;
    struct serial_item *next;
};

int serial_new(struct loop *loop, struct serial **ret_serial, struct skrull_error *err);

/* Never fails. On the loop's thread. */
void serial_push(struct serial *serial, struct serial_item *item);

/* Finishes all items (their `done` runs here; items that these push are finished too), ends the
 * thread. NULL is fine. */
void serial_free(struct serial *serial);

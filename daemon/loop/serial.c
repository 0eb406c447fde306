/*
 * The serial queue: two lists under one lock. The loop appends to `waiting`, the thread moves each
 * item to `finished` once it ran, and wakes the loop when that list was empty. libuv merges
 * wake-ups, so the loop takes the whole list each time.
 */
#include "loop/serial.h"

#include <stdbool.h>
#include <stdlib.h>

#include <uv.h>

struct list {
    struct serial_item *first, *last;
};

struct serial {
    uv_async_t wake; /* first: freed with the handle */
    uv_thread_t thread;
    uv_mutex_t lock; /* guards what follows */
    uv_cond_t changed;
    struct list waiting, finished;
    bool is_running; /* an item is */
    bool is_ending;
};

static void list_append(struct list *list, struct serial_item *item)
{
    item->next = NULL;
    if (list->last) {
        list->last->next = item;
    } else {
        list->first = item;
    }
    list->last = item;
}

static struct serial_item *list_take(struct list *list)
{
    struct serial_item *item = list->first;

    if (item) {
        list->first = item->next;
        if (!list->first) {
            list->last = NULL;
        }
    }
    return item;
}

static void run(void *arg)
{
    struct serial *serial = (struct serial *)arg;

    uv_mutex_lock(&serial->lock);
    for (;;) {
        struct serial_item *item = list_take(&serial->waiting);

        if (!item) {
            if (serial->is_ending) {
                break;
            }
            uv_cond_wait(&serial->changed, &serial->lock);
            continue;
        }
        serial->is_running = true;
        uv_mutex_unlock(&serial->lock);
        item->work(item->arg);
        uv_mutex_lock(&serial->lock);
        serial->is_running = false;
        if (!serial->finished.first) {
            (void)uv_async_send(&serial->wake);
        }
        list_append(&serial->finished, item);
        uv_cond_broadcast(&serial->changed);
    }
    uv_mutex_unlock(&serial->lock);
}

static void deliver(struct serial *serial)
{
    struct serial_item *item;

    uv_mutex_lock(&serial->lock);
    item = serial->finished.first;
    serial->finished = (struct list){NULL, NULL};
    uv_mutex_unlock(&serial->lock);
    while (item) {
        struct serial_item *next = item->next; /* done may free the item */

        item->done(item->arg);
        item = next;
    }
}

static void on_wake(uv_async_t *wake)
{
    deliver((struct serial *)wake->data);
}

static void on_closed(uv_handle_t *wake)
{
    free(wake->data);
}

int serial_new(struct loop *loop, struct serial **ret_serial, struct skrull_error *err)
{
    struct serial *serial = calloc(1, sizeof(*serial));
    int code;

    if (!serial) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "serial queue: out of memory");
    }
    code = uv_async_init(loop_uv(loop), &serial->wake, on_wake);
    if (code < 0) {
        free(serial);
        return loop_error(err, code, "serial queue");
    }
    serial->wake.data = serial;
    if (uv_mutex_init(&serial->lock) < 0 || uv_cond_init(&serial->changed) < 0) {
        uv_close((uv_handle_t *)&serial->wake, on_closed);
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "serial queue: no lock");
    }
    code = uv_thread_create(&serial->thread, run, serial);
    if (code < 0) {
        uv_cond_destroy(&serial->changed);
        uv_mutex_destroy(&serial->lock);
        uv_close((uv_handle_t *)&serial->wake, on_closed);
        return loop_error(err, code, "serial queue");
    }
    *ret_serial = serial;
    return 0;
}

void serial_push(struct serial *serial, struct serial_item *item)
{
    uv_mutex_lock(&serial->lock);
    list_append(&serial->waiting, item);
    uv_cond_broadcast(&serial->changed);
    uv_mutex_unlock(&serial->lock);
}

/* Waits for the thread to have nothing left; false where nothing was finished since the last call.
 */
static bool wait_idle(struct serial *serial)
{
    bool is_finished;

    uv_mutex_lock(&serial->lock);
    while (serial->waiting.first || serial->is_running) {
        uv_cond_wait(&serial->changed, &serial->lock);
    }
    is_finished = serial->finished.first != NULL;
    uv_mutex_unlock(&serial->lock);
    return is_finished;
}

void serial_free(struct serial *serial)
{
    if (!serial) {
        return;
    }
    while (wait_idle(serial)) {
        deliver(serial);
    }
    uv_mutex_lock(&serial->lock);
    serial->is_ending = true;
    uv_cond_broadcast(&serial->changed);
    uv_mutex_unlock(&serial->lock);
    (void)uv_thread_join(&serial->thread);
    uv_cond_destroy(&serial->changed);
    uv_mutex_destroy(&serial->lock);
    uv_close((uv_handle_t *)&serial->wake, on_closed);
}

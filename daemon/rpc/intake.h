/*
 * Which calls may send their requests at a time. gRPC holds a request until it is whole, up to the
 * largest of any method, and knows no bound on how many are half there; but of a call whose request
 * nobody asked for it takes no more than the window of a stream. So requests are asked for a few at
 * a time: those of good clients are there within a turn of the loop. Where calls wait, one that
 * does not get its request here in time makes room; the last that came is the first to go on, so
 * that a good client is not behind all that a bad one has opened. Pure; the clock is a parameter.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INTAKE_RECEIVING                                                                           \
    64 /* requests that are received at a time, of METHOD_BATCH_BYTES at most */
#define INTAKE_WAITING 8192  /* calls that wait; the oldest is refused for one more */
#define INTAKE_STALL_MS 1000 /* what a request may take while others wait */
#define INTAKE_WAIT_MS 10000 /* what a call waits at most */

enum intake_state { INTAKE_OUT, INTAKE_IS_WAITING, INTAKE_IS_RECEIVING };

/* Embedded in a call; zeros at first. */
struct intake_item {
    struct intake_item *prev, *next;
    uint64_t since_ms; /* in its state */
    enum intake_state state;
};

struct intake_list {
    struct intake_item *first, *last; /* oldest first */
    size_t n;
};

/* Zeros at first; no deinit. */
struct intake {
    struct intake_list receiving, waiting;
};

/* `item` comes. True: its request is to be received; false: it waits. *ret_refused: an item that
 * cannot wait any longer for it, taken out, or NULL. */
bool intake_enter(struct intake *intake, struct intake_item *item, uint64_t now_ms,
                  struct intake_item **ret_refused);

/* Takes an item out, whatever its state: its request is there, or its client has gone. */
void intake_leave(struct intake *intake, struct intake_item *item);

/* One that waited and whose request is to be received now; NULL: none. */
struct intake_item *intake_next(struct intake *intake, uint64_t now_ms);

/* One that is to be refused since it took too long, taken out; NULL: none. */
struct intake_item *intake_overdue(struct intake *intake, uint64_t now_ms);

/* Two lists, both in the order of time. See intake.h. */
#include "rpc/intake.h"

#include <assert.h>

static void append(struct intake_list *list, struct intake_item *item)
{
    item->prev = list->last;
    item->next = NULL;
    *(list->last ? &list->last->next : &list->first) = item;
    list->last = item;
    list->n++;
}

static void drop(struct intake_list *list, struct intake_item *item)
{
    *(item->prev ? &item->prev->next : &list->first) = item->next;
    *(item->next ? &item->next->prev : &list->last) = item->prev;
    list->n--;
}

static void receive(struct intake *intake, struct intake_item *item, uint64_t now_ms)
{
    item->state = INTAKE_IS_RECEIVING;
    item->since_ms = now_ms;
    append(&intake->receiving, item);
}

bool intake_enter(struct intake *intake, struct intake_item *item, uint64_t now_ms,
                  struct intake_item **ret_refused)
{
    assert(item->state == INTAKE_OUT);
    *ret_refused = NULL;
    if (intake->receiving.n < INTAKE_RECEIVING) {
        receive(intake, item, now_ms);
        return true;
    }
    if (intake->waiting.n == INTAKE_WAITING) {
        *ret_refused = intake->waiting.first;
        intake_leave(intake, *ret_refused);
    }
    item->state = INTAKE_IS_WAITING;
    item->since_ms = now_ms;
    append(&intake->waiting, item);
    return false;
}

void intake_leave(struct intake *intake, struct intake_item *item)
{
    if (item->state == INTAKE_IS_RECEIVING) {
        drop(&intake->receiving, item);
    } else if (item->state == INTAKE_IS_WAITING) {
        drop(&intake->waiting, item);
    }
    item->state = INTAKE_OUT;
}

struct intake_item *intake_next(struct intake *intake, uint64_t now_ms)
{
    struct intake_item *item = intake->waiting.last;

    if (!item || intake->receiving.n == INTAKE_RECEIVING) {
        return NULL;
    }
    intake_leave(intake, item);
    receive(intake, item, now_ms);
    return item;
}

struct intake_item *intake_overdue(struct intake *intake, uint64_t now_ms)
{
    struct intake_item *slow = intake->receiving.first, *item = intake->waiting.first;

    if (!item) {
        return NULL; /* nobody is kept waiting by those that are slow */
    }
    if (now_ms - item->since_ms < INTAKE_WAIT_MS) {
        item = slow && now_ms - slow->since_ms >= INTAKE_STALL_MS ? slow : NULL;
    }
    if (item) {
        intake_leave(intake, item);
    }
    return item;
}

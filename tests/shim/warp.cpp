/*
 * Operations of a warp. Each lane leaves a pointer to its operands and gives way; the last to
 * arrive does the work of all through these pointers, then all are ready. One switch a lane.
 */
#include "shim/warp.h"
#include "shim/block.h"

#include <cstring>

#include "shim/sanitizer.h"

namespace shim
{
namespace
{
bool agrees(const struct thread *me, const struct thread *other)
{
    return other->operation == me->operation && other->mask == me->mask &&
           other->at.line == me->at.line && other->at.file == me->at.file;
}

/* Another lane waits for me, and I for it, but not in the same place: neither will ever go on. */
void check_other(const struct thread *me, const struct thread *other)
{
    if (!agrees(me, other) && other->mask >> me->view.lane & 1) {
        fault_with_threads("lanes of one warp meet in different operations: lane %u in %s of lanes "
                           "%08x at %s:%d, lane %u in %s of lanes %08x at %s:%d",
                           me->view.lane, me->operation->name, me->mask, me->at.file, me->at.line,
                           other->view.lane, other->operation->name, other->mask, other->at.file,
                           other->at.line);
    }
}

/* Whether all lanes of my mask are here. Some may still be in an operation of a mask without me. */
bool is_complete(const struct thread *me)
{
    const struct warp *warp = me->warp;
    const uint32_t here = warp->arrived & me->mask;
    bool is_all = here == me->mask;

    for (uint32_t rest = is_all ? here : here & -here; rest; rest &= rest - 1) {
        const struct thread *other = &warp->lanes[__builtin_ctz(rest)];

        check_other(me, other);
        is_all = is_all && agrees(me, other);
    }
    return is_all;
}

void run_for_all(struct thread *me)
{
    struct warp *warp = me->warp;
    void *data[n_lanes] = {};

    for (uint32_t rest = me->mask; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);

        data[lane] = warp->lanes[lane].data;
        warp->lanes[lane].state = THREAD_READY;
    }
    me->operation->run(data, me->mask);
    warp->arrived &= ~me->mask;
    warp->ready |= me->mask;
    stats.warp_operations++;
}

struct shuffle {
    void *value;
    unsigned size;
    int source;
};

void run_shuffle(void *const data[n_lanes], uint32_t mask)
{
    uint64_t values[n_lanes] = {};

    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const shuffle *s = static_cast<const shuffle *>(data[lane]);

        values[lane] = s->size == 8 ? *static_cast<const uint64_t *>(s->value)
                                    : *static_cast<const uint32_t *>(s->value);
    }
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const shuffle *s = static_cast<const shuffle *>(data[__builtin_ctz(rest)]);

        if (s->source < 0 || s->source >= n_lanes) {
            continue;
        }
        if (!(mask >> s->source & 1)) {
            fault("a shuffle reads lane %d, which is not in its mask %08x", s->source, mask);
        }
        if (s->size == 8) {
            *static_cast<uint64_t *>(s->value) = values[s->source];
        } else {
            *static_cast<uint32_t *>(s->value) = (uint32_t)values[s->source];
        }
    }
}

struct ballot {
    bool predicate;
    uint32_t result;
};

void run_ballot(void *const data[n_lanes], uint32_t mask)
{
    uint32_t result = 0;

    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);

        result |= (uint32_t) static_cast<ballot *>(data[lane])->predicate << lane;
    }
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        static_cast<ballot *>(data[__builtin_ctz(rest)])->result = result;
    }
}

void run_nothing(void *const[n_lanes], uint32_t)
{
}

/* The edge of this mask; with more masks than there is room for, the last is shared and orders more
 * than it should. */
warp_edge *edge_of(struct warp *warp, uint32_t mask)
{
    warp_edge *edge = warp->edges;

    while (edge < warp->edges + n_warp_edges - 1 && edge->mask != 0 && edge->mask != mask) {
        edge++;
    }
    edge->mask = mask;
    return edge;
}
} // namespace

void warp_meet(const warp_operation *operation, uint32_t mask, void *data, where at)
{
    struct thread *me = this_thread();
    struct warp *warp = me->warp;
    const uint32_t bit = 1u << me->view.lane;

    me->operation = operation;
    me->mask = mask;
    me->data = data;
    me->at = at;
    if (!(mask & bit)) {
        fault("lane %u is not in the mask %08x of its own %s at %s:%d", me->view.lane, mask,
              operation->name, at.file, at.line);
    }
    if (mask & ~warp->alive) {
        fault_with_threads("%s at %s:%d waits for lanes %08x, which are not there or have left",
                           operation->name, at.file, at.line, mask & ~warp->alive);
    }
    warp->arrived |= bit;
    if (is_complete(me)) {
        run_for_all(me);
        if (running->order == 2) {
            give_way(warp);
        }
        return;
    }
    me->state = THREAD_AT_WARP;
    warp->ready &= ~bit;
    give_way(warp);
}

void warp_sync(uint32_t mask, where at)
{
    static const warp_operation operation = {"__syncwarp", run_nothing};
    struct warp *warp = this_thread()->warp;
    warp_edge *edge = edge_of(warp, mask);
    const unsigned turn = edge->turn;
    const size_t i_edge =
        (size_t)(warp - &running->warps[0]) * n_warp_edges + (size_t)(edge - warp->edges);
    char *point = &running->edge_points[2 + 2 * i_edge + (turn & 1)];

    sanitizer_release(point);
    warp_meet(&operation, mask, nullptr, at);
    edge->turn = turn + 1;
    sanitizer_acquire(point);
}

void warp_shuffle(uint32_t mask, void *value, unsigned size, int source, where at)
{
    static const warp_operation operation = {"a shuffle", run_shuffle};
    shuffle s = {value, size, source};

    warp_meet(&operation, mask, &s, at);
}

uint32_t warp_ballot(uint32_t mask, bool predicate, where at)
{
    static const warp_operation operation = {"a ballot", run_ballot};
    ballot b = {predicate, 0};

    warp_meet(&operation, mask, &b, at);
    return b.result;
}
} // namespace shim

/* Who runs next, the barrier, and the end of a thread. */
#include "shim/block.h"

#include "shim/sanitizer.h"

namespace shim
{
constinit thread_local const kernel_thread *self = nullptr;
constinit thread_local struct block *running = nullptr;
constinit thread_local struct shim_stats stats = {};

namespace
{
/* xorshift64 (Marsaglia 2003). */
uint32_t random_below(struct block *b, uint32_t limit)
{
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    return (uint32_t)((b->random >> 32) * limit >> 32);
}

int choose_lane(struct block *b, uint32_t ready)
{
    if (b->order == 0) {
        return __builtin_ctz(ready);
    }
    if (b->order == 1) {
        return n_lanes - 1 - __builtin_clz(ready);
    }
    for (uint32_t skip = random_below(b, (uint32_t)__builtin_popcount(ready)); skip > 0; skip--) {
        ready &= ready - 1;
    }
    return __builtin_ctz(ready);
}

struct thread *choose_thread(struct block *b, struct warp *warp)
{
    const size_t n_warps = b->warps.size();
    size_t first = 0;

    if (b->order == 2) {
        first = random_below(b, (uint32_t)n_warps);
    } else if (warp && warp->ready) {
        return &warp->lanes[choose_lane(b, warp->ready)];
    }
    for (size_t i = 0; i < n_warps; i++) {
        struct warp *w = &b->warps[b->order == 1 ? n_warps - 1 - i : (first + i) % n_warps];

        if (w->ready) {
            return &w->lanes[choose_lane(b, w->ready)];
        }
    }
    return nullptr;
}

void set_state(struct thread *thread, thread_state state)
{
    const uint32_t bit = 1u << thread->view.lane;

    thread->state = state;
    thread->warp->ready &= ~bit;
    if (state == THREAD_READY) {
        thread->warp->ready |= bit;
    }
}

void go_to(struct thread *from, struct thread *to)
{
    stats.switches++;
    self = &to->view;
    fiber_switch(from->fiber, to->fiber, from->state == THREAD_GONE);
}

void leave(struct block *b, struct thread *thread)
{
    if (thread->n_copies > 0) {
        const where at = thread->copies[0].at;

        fault("a thread leaves the kernel with a cp.async under way, issued at %s:%d", at.file,
              at.line);
    }
    set_state(thread, THREAD_GONE);
    thread->warp->alive &= ~(1u << thread->view.lane);
    b->n_alive--;
    if (b->n_at_barrier > 0) {
        fault_with_threads("a thread leaves the kernel while others wait at __syncthreads");
    }
    if (b->n_alive > 0) {
        give_way(thread->warp);
    }
    fiber_switch(thread->fiber, b->main, true);
    __builtin_unreachable();
}

void thread_entry()
{
    struct block *b = running;
    struct thread *thread = this_thread();

    sanitizer_enter(thread->fiber);
    sanitizer_acquire(&b->start_point);
    b->body(b->arg);
    sanitizer_release(&b->end_point);
    leave(b, this_thread());
}
} // namespace

void give_way(struct warp *warp)
{
    struct thread *me = this_thread(), *next = choose_thread(running, warp);

    if (next == nullptr) {
        fault_with_threads(running->n_at_barrier > 0
                               ? "some threads wait at __syncthreads, others never come"
                               : "lanes wait for others of their warp that never come");
    }
    if (next != me) {
        go_to(me, next);
    }
}

void block_barrier(where at)
{
    struct block *b = running;
    struct thread *me = this_thread();
    char *point = &b->edge_points[b->barrier_turn & 1];

    me->operation = nullptr;
    me->at = at;
    if (b->n_alive != b->threads.size()) {
        fault_with_threads("__syncthreads at %s:%d after some threads have left the kernel",
                           at.file, at.line);
    }
    if (b->n_at_barrier == 0) {
        b->barrier_at = at;
    } else if (b->barrier_at.line != at.line || b->barrier_at.file != at.file) {
        fault("threads of one block wait at different __syncthreads: %s:%d and %s:%d",
              b->barrier_at.file, b->barrier_at.line, at.file, at.line);
    }
    sanitizer_release(point);
    set_state(me, THREAD_AT_BARRIER);
    if (++b->n_at_barrier == b->threads.size()) {
        b->n_at_barrier = 0;
        b->barrier_turn++;
        stats.barriers++;
        for (struct thread &thread : b->threads) {
            set_state(&thread, THREAD_READY);
        }
    }
    give_way(b->n_at_barrier > 0 ? me->warp : nullptr);
    sanitizer_acquire(point);
}

void block_run()
{
    struct block *b = running;

    b->n_alive = (unsigned)b->threads.size();
    b->n_at_barrier = 0;
    for (struct warp &warp : b->warps) {
        const size_t first = (size_t)(&warp - &b->warps[0]) * n_lanes;
        const size_t n = std::min<size_t>(b->threads.size() - first, n_lanes);

        warp = {};
        warp.lanes = &b->threads[first];
        warp.alive = warp.ready = ~0u >> (n_lanes - n);
    }
    for (struct thread &thread : b->threads) {
        thread.state = THREAD_READY;
        thread.operation = nullptr;
        thread.at = where("the start of the kernel", 0);
        thread.group = 0;
        thread.n_copies = 0;
        thread.view.block_idx = b->idx;
        fiber_start(thread.fiber, thread_entry);
    }
    sanitizer_release(&b->start_point);
    struct thread *first = choose_thread(b, nullptr);
    self = &first->view;
    fiber_switch(b->main, first->fiber, false);
    self = nullptr;
    stats.blocks++;
}
} // namespace shim

/*
 * Fibers: stacks that are left and entered again. Switching is switch_x86_64.cpp (eight
 * instructions a side) or, elsewhere, switch_ucontext.cpp (five times slower: a system call each).
 */
#pragma once

#include <cstddef>

namespace shim
{
struct fiber {
    void *place; /* where it goes on; of switch_*.cpp */
    char *stack;
    size_t stack_bytes;
    void *fake_stack, *race_fiber; /* of sanitizer_*.cpp */
};

/* A stack with a guard page; ends the process where there is no memory. */
void fiber_open(struct fiber *fiber);
void fiber_close(struct fiber *fiber);

/* The OS thread itself, to come back to. */
void fiber_open_main(struct fiber *fiber);

/* From the next switch on it runs `entry`, which never returns; what ran there is dropped. */
void fiber_start(struct fiber *fiber, void (*entry)(void));

/* Leaves `from` for `to`; comes back when somebody switches to `from`, unless it has ended. */
void fiber_switch(struct fiber *from, struct fiber *to, bool from_ends);

/* Of switch_*.cpp. */
void *place_new(char *stack, size_t stack_bytes, void (*entry)(void));
void place_switch(void **ret_place, void *to);
} // namespace shim

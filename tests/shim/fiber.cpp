/* Fibers: memory of their stacks, and what the sanitizers must know about a switch. */
#include "shim/fiber.h"

#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <sys/mman.h>

#include "shim/sanitizer.h"

namespace shim
{
namespace
{
constexpr size_t guard_bytes = 4096, usable_bytes = 256 * 1024; /* sanitized frames are large */

[[noreturn]] void no_memory()
{
    fputs("shim: no memory for the stack of a kernel's thread\n", stderr);
    abort();
}
} // namespace

void fiber_open(struct fiber *fiber)
{
    void *memory = mmap(nullptr, guard_bytes + usable_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED || mprotect(memory, guard_bytes, PROT_NONE)) {
        no_memory();
    }
    *fiber = {};
    fiber->stack = static_cast<char *>(memory) + guard_bytes;
    fiber->stack_bytes = usable_bytes;
    sanitizer_open_fiber(fiber);
}

void fiber_close(struct fiber *fiber)
{
    sanitizer_close_fiber(fiber);
    munmap(fiber->stack - guard_bytes, guard_bytes + usable_bytes);
}

void fiber_open_main(struct fiber *fiber)
{
    pthread_attr_t attributes;
    void *stack;

    *fiber = {};
    if (pthread_getattr_np(pthread_self(), &attributes) ||
        pthread_attr_getstack(&attributes, &stack, &fiber->stack_bytes)) {
        no_memory();
    }
    pthread_attr_destroy(&attributes);
    fiber->stack = static_cast<char *>(stack);
    sanitizer_open_main(fiber);
}

void fiber_start(struct fiber *fiber, void (*entry)(void))
{
    sanitizer_unpoison(fiber->stack, fiber->stack_bytes);
    fiber->fake_stack = nullptr;
    fiber->place = place_new(fiber->stack, fiber->stack_bytes, entry);
}

void fiber_switch(struct fiber *from, struct fiber *to, bool from_ends)
{
    sanitizer_leave(from, to, from_ends);
    place_switch(&from->place, to->place);
    sanitizer_enter(from);
}
} // namespace shim

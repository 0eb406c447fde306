/* The switch wherever POSIX is: a context at the low end of a fiber's stack, or the OS thread's. */
#include <cstdint>
#include <ucontext.h>

#include "shim/fiber.h"

namespace shim
{
namespace
{
constexpr size_t context_bytes = (sizeof(ucontext_t) + 63) / 64 * 64;
thread_local ucontext_t main_context;
} // namespace

void *place_new(char *stack, size_t stack_bytes, void (*entry)(void))
{
    ucontext_t *context = reinterpret_cast<ucontext_t *>(stack);

    getcontext(context);
    context->uc_stack.ss_sp = stack + context_bytes;
    context->uc_stack.ss_size = stack_bytes - context_bytes;
    context->uc_link = nullptr;
    makecontext(context, entry, 0);
    return context;
}

void place_switch(void **ret_place, void *to)
{
    if (*ret_place == nullptr) {
        *ret_place = &main_context;
    }
    swapcontext(static_cast<ucontext_t *>(*ret_place), static_cast<ucontext_t *>(to));
}
} // namespace shim

/*
 * ThreadSanitizer as a race checker of kernels: each stack is a fiber of its own to it, and a
 * switch orders nothing; only the edges that the runtime names do. A fiber stays with its stack for
 * good: a new one on an old stack would race with the last.
 */
#include "shim/sanitizer.h"

#include <sanitizer/tsan_interface.h>

#include "shim/fiber.h"

extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_read16_pc(const void *p, void *from);
void __tsan_write16_pc(void *p, void *from);
}

namespace shim
{
namespace
{
constexpr unsigned no_order = 1; /* __tsan_switch_to_fiber_no_sync */
}

void sanitizer_open_fiber(struct fiber *fiber)
{
    fiber->race_fiber = __tsan_create_fiber(0);
}

void sanitizer_close_fiber(struct fiber *fiber)
{
    __tsan_destroy_fiber(fiber->race_fiber);
}

void sanitizer_open_main(struct fiber *fiber)
{
    fiber->race_fiber = __tsan_get_current_fiber();
}

void sanitizer_leave(struct fiber *, struct fiber *to, bool)
{
    __tsan_switch_to_fiber(to->race_fiber, no_order);
}

void sanitizer_enter(struct fiber *)
{
}

void sanitizer_release(void *point)
{
    __tsan_release(point);
}

void sanitizer_acquire(void *point)
{
    __tsan_acquire(point);
}

void sanitizer_read(const void *p, size_t bytes, void *from)
{
    for (size_t i = 0; i < bytes; i += 16) {
        __tsan_read16_pc(static_cast<const char *>(p) + i, from);
    }
}

void sanitizer_write(void *p, size_t bytes, void *from)
{
    for (size_t i = 0; i < bytes; i += 16) {
        __tsan_write16_pc(static_cast<char *>(p) + i, from);
    }
}

bool sanitizer_sees_races()
{
    return true;
}

void sanitizer_poison(void *, size_t)
{
}

void sanitizer_unpoison(void *, size_t)
{
}
} // namespace shim

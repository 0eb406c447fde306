/* AddressSanitizer: it must know the bounds of the stack that runs, and sees what lanes touch. */
#include "shim/sanitizer.h"

#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

#include "shim/fiber.h"

extern "C" void __asan_report_error(void *pc, void *bp, void *sp, void *address, int is_write,
                                    size_t size);

namespace shim
{
namespace
{
/* Reports as if the access stood in the kernel. */
void check(const void *p, size_t bytes, bool is_write, void *from)
{
    void *bad = __asan_region_is_poisoned(const_cast<void *>(p), bytes);

    if (bad) {
        __asan_report_error(from, __builtin_frame_address(0), __builtin_frame_address(0), bad,
                            is_write, bytes);
    }
}
} // namespace

void sanitizer_open_fiber(struct fiber *)
{
}

void sanitizer_close_fiber(struct fiber *)
{
}

void sanitizer_open_main(struct fiber *)
{
}

void sanitizer_leave(struct fiber *from, struct fiber *to, bool from_ends)
{
    __sanitizer_start_switch_fiber(from_ends ? nullptr : &from->fake_stack, to->stack,
                                   to->stack_bytes);
}

void sanitizer_enter(struct fiber *self)
{
    __sanitizer_finish_switch_fiber(self->fake_stack, nullptr, nullptr);
}

void sanitizer_release(void *)
{
}

void sanitizer_acquire(void *)
{
}

void sanitizer_read(const void *p, size_t bytes, void *from)
{
    check(p, bytes, false, from);
}

void sanitizer_write(void *p, size_t bytes, void *from)
{
    check(p, bytes, true, from);
}

bool sanitizer_sees_races()
{
    return false;
}

void sanitizer_poison(void *p, size_t bytes)
{
    __asan_poison_memory_region(p, bytes);
}

void sanitizer_unpoison(void *p, size_t bytes)
{
    __asan_unpoison_memory_region(p, bytes);
}
} // namespace shim

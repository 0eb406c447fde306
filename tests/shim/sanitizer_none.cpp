/* No sanitizer. */
#include "shim/sanitizer.h"

namespace shim
{
void sanitizer_open_fiber(struct fiber *)
{
}

void sanitizer_close_fiber(struct fiber *)
{
}

void sanitizer_open_main(struct fiber *)
{
}

void sanitizer_leave(struct fiber *, struct fiber *, bool)
{
}

void sanitizer_enter(struct fiber *)
{
}

void sanitizer_release(void *)
{
}

void sanitizer_acquire(void *)
{
}

void sanitizer_read(const void *, size_t, void *)
{
}

void sanitizer_write(void *, size_t, void *)
{
}

bool sanitizer_sees_races()
{
    return false;
}

void sanitizer_poison(void *, size_t)
{
}

void sanitizer_unpoison(void *, size_t)
{
}
} // namespace shim

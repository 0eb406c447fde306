/*
 * What the shim tells the sanitizer of the build: one of sanitizer_none.cpp, _address.cpp,
 * _thread.cpp is linked. The runtime itself is never instrumented: it touches the lanes' stacks for
 * them, in an order that it alone knows.
 */
#pragma once

#include <cstddef>

namespace shim
{
struct fiber;

void sanitizer_open_fiber(struct fiber *fiber);
void sanitizer_close_fiber(struct fiber *fiber);
void sanitizer_open_main(struct fiber *fiber);

/* Around a switch: before it, on the old stack; after it, on the new one (`self` is who returned
 * there; for a fiber's first time call it with itself). */
void sanitizer_leave(struct fiber *from, struct fiber *to, bool from_ends);
void sanitizer_enter(struct fiber *self);

/* An edge in time: what came before a release at `point` comes before what follows an acquire. */
void sanitizer_release(void *point);
void sanitizer_acquire(void *point);

/* The running thread reads or writes these bytes; called straight from the function that the
 * kernel called, `from` is the address in the kernel. */
void sanitizer_read(const void *p, size_t bytes, void *from);
void sanitizer_write(void *p, size_t bytes, void *from);

/* Whether it looks for accesses that nothing orders. */
bool sanitizer_sees_races();

void sanitizer_poison(void *p, size_t bytes);
void sanitizer_unpoison(void *p, size_t bytes);
} // namespace shim

/*
 * cp.async, as late as the rules allow: at the wait that names its group. Until then the target
 * reads as NaN, so that a missing wait shows in the result.
 */
#include "shim/block.h"

#include <cstring>

#include "shim/sanitizer.h"

namespace shim
{
namespace
{
constexpr size_t copy_bytes = 16;
} // namespace

void copy_issue(void *dst, const void *src, bool is_valid, where at)
{
    struct thread *me = this_thread();

    if (!is_shared(dst, copy_bytes) || (is_valid && is_shared(src, 1))) {
        fault("cp.async at %s:%d does not go from global to shared memory", at.file, at.line);
    }
    if (reinterpret_cast<uintptr_t>(dst) % copy_bytes ||
        (is_valid && reinterpret_cast<uintptr_t>(src) % copy_bytes)) {
        fault("cp.async at %s:%d of 16 bytes that are not aligned to 16", at.file, at.line);
    }
    sanitizer_write(dst, copy_bytes, __builtin_return_address(0));
    if (is_valid) {
        sanitizer_read(src, copy_bytes, __builtin_return_address(0));
    }
    memset(dst, 0xff, copy_bytes);
    if (me->n_copies == most_copies) {
        fault("cp.async at %s:%d: a thread has %zu under way, more than the shim keeps", at.file,
              at.line, most_copies);
    }
    me->copies[me->n_copies++] = {dst, src, is_valid, me->group, at};
}

void copy_commit(void)
{
    this_thread()->group++;
}

void copy_wait(unsigned n_left, where)
{
    struct thread *me = this_thread();
    size_t n_kept = 0;

    for (size_t i = 0; i < me->n_copies; i++) {
        const copy c = me->copies[i];

        if (me->group - c.group <= n_left) {
            me->copies[n_kept++] = c;
            continue;
        }
        sanitizer_write(c.dst, copy_bytes, __builtin_return_address(0));
        if (c.is_valid) {
            memcpy(c.dst, c.src, copy_bytes);
        } else {
            memset(c.dst, 0, copy_bytes);
        }
    }
    me->n_copies = n_kept;
}
} // namespace shim

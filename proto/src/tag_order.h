/*
 * The order that gRPC keeps and the thread sanitizer cannot see: what was done before a tag was
 * given to gRPC happens before what is done once it came back. Debian's libgrpc is not
 * instrumented, so that a sanitized program says so itself; in any other build this is nothing. To
 * be run with TSAN_OPTIONS=ignore_noninstrumented_modules=1.
 */
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TAG_ORDER_IS_CHECKED 1 /* clang */
#endif
#elif defined(__SANITIZE_THREAD__)
#define TAG_ORDER_IS_CHECKED 1 /* gcc */
#endif

#ifdef TAG_ORDER_IS_CHECKED
/* As <sanitizer/tsan_interface.h> has them. */
void __tsan_release(void *address);
void __tsan_acquire(void *address);
#else
#define __tsan_release(address) (void)(address)
#define __tsan_acquire(address) (void)(address)
#endif

/* Before each batch and each request for a call. */
static inline void tag_hand_over(void *tag)
{
    __tsan_release(tag);
}

/* After each event. */
static inline void tag_take_back(void *tag)
{
    __tsan_acquire(tag);
}

/* Reports of what a kernel did wrong. */
#include "shim/block.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace shim
{
namespace
{
void print_message(const char *format, va_list args)
{
    fputs("shim: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    if (self) {
        fprintf(stderr, "  thread (%u,%u,%u) of block (%u,%u,%u), SHIM_ORDER=%d\n",
                self->thread_idx.x, self->thread_idx.y, self->thread_idx.z, self->block_idx.x,
                self->block_idx.y, self->block_idx.z, running->order);
        if (this_thread()->at.line > 0) {
            fprintf(stderr, "  last seen at %s:%d\n", this_thread()->at.file,
                    this_thread()->at.line);
        }
    }
}

bool is_like(const struct thread &a, const struct thread &b)
{
    return a.state == b.state && a.operation == b.operation && a.at.line == b.at.line;
}

void print_thread(const struct thread &thread, size_t first, size_t last)
{
    fprintf(stderr, "  threads %zu to %zu: ", first, last);
    switch (thread.state) {
    case THREAD_READY:
        fputs("could run\n", stderr);
        break;
    case THREAD_AT_WARP:
        fprintf(stderr, "wait for lanes %08x in %s at %s:%d\n", thread.mask, thread.operation->name,
                thread.at.file, thread.at.line);
        break;
    case THREAD_AT_BARRIER:
        fprintf(stderr, "wait in __syncthreads at %s:%d\n", thread.at.file, thread.at.line);
        break;
    case THREAD_GONE:
        fputs("have left the kernel\n", stderr);
        break;
    }
}

/* Neighbours in the same place are one line. */
void print_threads(const struct block *b)
{
    const std::vector<thread> &threads = b->threads;
    constexpr int most_lines = 20;
    int n_lines = 0;

    for (size_t i = 0, first = 0; i < threads.size() && n_lines < most_lines; i++) {
        if (i + 1 == threads.size() || !is_like(threads[i], threads[i + 1])) {
            print_thread(threads[i], first, i);
            first = i + 1;
            n_lines++;
        }
    }
}
} // namespace

void fault(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_message(format, args);
    va_end(args);
    abort();
}

void fault_with_threads(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_message(format, args);
    va_end(args);
    print_threads(running);
    abort();
}
} // namespace shim

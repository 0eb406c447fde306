/* Reports of what a kernel did wrong. */
#include "shim/block.h"

#include <algorithm>
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

void print_place(const struct thread &thread)
{
    switch (thread.state) {
    case THREAD_READY:
        fprintf(stderr, "could run, last seen at %s:%d\n", thread.at.file, thread.at.line);
        break;
    case THREAD_AT_WARP:
        fprintf(stderr, "wait for lanes %08x in %s at %s:%d\n", thread.mask, thread.operation->name,
                thread.at.file, thread.at.line);
        break;
    case THREAD_AT_BARRIER:
        fprintf(stderr, "wait in __syncthreads at %s:%d\n", thread.at.file, thread.at.line);
        break;
    case THREAD_GONE:
        fprintf(stderr, "have left the kernel, last seen at %s:%d\n", thread.at.file,
                thread.at.line);
        break;
    }
}

/* A line for each place where threads are. */
void print_threads(const struct block *b)
{
    const auto first = b->threads.begin(), last = b->threads.end();

    for (auto thread = first; thread != last; thread++) {
        const auto is_here = [&](const struct thread &other) { return is_like(*thread, other); };

        if (std::find_if(first, thread, is_here) == thread) {
            fprintf(stderr, "  %td threads, the first is number %td: ",
                    std::count_if(thread, last, is_here), thread - first);
            print_place(*thread);
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

/*
 * Mapped files and the guard against their truncation. A signal handler has no argument of ours, so
 * the table of mappings is file-scope state, as the log's is: a fixed number of slots, claimed and
 * freed by atomic operations, looked at by the handler.
 *
 * The handler calls mmap, which POSIX does not list as safe in a handler; on Linux it is one system
 * call. It lays a page of zeros over the lost one, so that the read that faulted goes on.
 */
#include "base/map.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct slot {
    _Atomic uintptr_t begin; /* 0: free */
    _Atomic uintptr_t end;   /* 0: claimed, not yet mapped */
    atomic_bool is_cut;
};

static struct slot slots[MAP_MAX];
static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction previous; /* written before our handler stands */
static uintptr_t page_size;

static struct slot *slot_at(uintptr_t address)
{
    for (size_t i = 0; i < MAP_MAX; i++) {
        const uintptr_t end = atomic_load(&slots[i].end);

        if (end && address < end && address >= atomic_load(&slots[i].begin)) {
            return &slots[i];
        }
    }
    return NULL;
}

static void pass_on(int number, siginfo_t *info, void *context)
{
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(number, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(number);
    } else {
        (void)signal(number, SIG_DFL); /* the fault comes again and ends the process */
    }
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
    const int saved = errno;
    const uintptr_t address = (uintptr_t)info->si_addr;
    struct slot *slot = info->si_code == BUS_ADRERR ? slot_at(address) : NULL;
    void *page = (void *)(address & ~(page_size - 1));

    if (slot && mmap(page, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
                    MAP_FAILED) {
        atomic_store(&slot->is_cut, true);
    } else {
        pass_on(number, info, context);
    }
    errno = saved;
}

void map_guard_install(void)
{
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};
    struct sigaction current;

    (void)sigemptyset(&action.sa_mask);
    (void)pthread_mutex_lock(&install_lock);
    (void)sigaction(SIGBUS, NULL, &current);
    if (!(current.sa_flags & SA_SIGINFO) || current.sa_sigaction != on_sigbus) {
        page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
        previous = current;
        (void)sigaction(SIGBUS, &action, NULL);
    }
    (void)pthread_mutex_unlock(&install_lock);
}

/* Takes a free slot, or NULL. */
static struct slot *claim(void)
{
    for (size_t i = 0; i < MAP_MAX; i++) {
        uintptr_t is_free = 0;

        if (atomic_compare_exchange_strong(&slots[i].begin, &is_free, UINTPTR_MAX)) {
            return &slots[i];
        }
    }
    return NULL;
}

static void release(struct slot *slot)
{
    atomic_store(&slot->end, 0);
    atomic_store(&slot->is_cut, false);
    atomic_store(&slot->begin, 0);
}

int map_open(int fd, const char *path, size_t size, const void **ret_bytes,
             struct skrull_error *err)
{
    struct slot *slot = claim();
    void *bytes;
    int number;

    if (!slot) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "%s: %d mapped files are open, the most there can be: delete jobs "
                                "that are done",
                                path, MAP_MAX);
    }
    bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) {
        number = errno;
        release(slot);
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "%s: mapping %zu bytes: %s",
                                path, size, strerror(number));
    }
    atomic_store(&slot->begin, (uintptr_t)bytes);
    atomic_store(&slot->end, (uintptr_t)bytes + size);
    *ret_bytes = bytes;
    return 0;
}

void map_close(const void *bytes, size_t size)
{
    if (bytes) {
        /* In this order: once it is unmapped, the next map_open may get the same address. */
        release(slot_at((uintptr_t)bytes));
        /* munmap's parameter is not const, though it writes nothing. */
        (void)munmap((void *)(uintptr_t)bytes, size);
    }
}

bool map_is_whole(const void *bytes)
{
    return !bytes || !atomic_load(&slot_at((uintptr_t)bytes)->is_cut);
}

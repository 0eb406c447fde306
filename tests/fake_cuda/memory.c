/* Memory of the fake: whole pages by mmap, so that the host can be kept off those of devices. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "world.h"

#define PAGE 4096u

struct memory {
    struct memory *next;
    char *at;
    size_t bytes, mapped;
    uint32_t device;
    bool is_host;
};

static struct memory *memories;
static bool is_open_now;

void *memory_new(uint32_t device, size_t bytes, bool is_host)
{
    struct memory *memory = calloc(1, sizeof(*memory));
    size_t mapped = (bytes + 2 * PAGE - 1) / PAGE * PAGE;

    if (!memory) {
        return NULL;
    }
    memory->at = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory->at == MAP_FAILED) {
        free(memory);
        return NULL;
    }
    memset(memory->at, 0xff, mapped);
    memory->bytes = bytes;
    memory->mapped = mapped;
    memory->device = device;
    memory->is_host = is_host;
    memory->next = memories;
    memories = memory;
    if (!is_host && !is_open_now) {
        (void)mprotect(memory->at, mapped, PROT_NONE);
    }
    return memory->at;
}

bool memory_free(void *at, bool is_host)
{
    for (struct memory **link = &memories; *link; link = &(*link)->next) {
        struct memory *memory = *link;

        if (memory->at == at && memory->is_host == is_host) {
            *link = memory->next;
            (void)munmap(memory->at, memory->mapped);
            free(memory);
            return true;
        }
    }
    return false;
}

void memory_open(bool is_open)
{
    is_open_now = is_open;
    for (struct memory *memory = memories; memory; memory = memory->next) {
        if (!memory->is_host) {
            (void)mprotect(memory->at, memory->mapped,
                           is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
        }
    }
}

bool memory_holds(const void *at, size_t bytes, bool *ret_is_host)
{
    uintptr_t begin = (uintptr_t)at;

    for (const struct memory *memory = memories; memory; memory = memory->next) {
        uintptr_t first = (uintptr_t)memory->at;

        if (begin >= first && begin - first <= memory->bytes &&
            bytes <= memory->bytes - (begin - first)) {
            *ret_is_host = memory->is_host;
            return true;
        }
    }
    return false;
}

uint32_t memory_free_all(void)
{
    uint32_t n = 0;

    while (memories) {
        (void)memory_free(memories->at, memories->is_host);
        n++;
    }
    return n;
}

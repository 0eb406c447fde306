/*
 * The fake's streams. Threads of ranks only put work on them. Once all threads wait (or have
 * ended), the last one runs the streams, action by action, until all that is waited for has come or
 * nothing can go on; then those whose wait is over go on. Half of the seeds draw every action anew,
 * the other half run the stream of the highest priority and now and then draw priorities anew,
 * which finds orders in which one stream is far ahead of another.
 */
#include "world.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REPORTS_SIZE 4096u
#define STALL_MS 2000

struct waiter {
    struct waiter *next;
    bool (*is_done)(const void *arg);
    const void *arg;
    bool is_over, has_come;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t seed, state; /* of the generator */
    bool by_priority;
    uint32_t n_threads, n_devices; /* threads that have not ended */
    struct waiter *waiters;
    uint32_t n_waiters;
    struct CUstream_st *streams, *defaults[FAKE_MAX_DEVICES];
    uint32_t n_streams[FAKE_MAX_DEVICES];
    uint64_t n_run;
    long n_left_over;
    char reports[REPORTS_SIZE];
} world = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Thread_local uint32_t thread_device;

void world_lock(void)
{
    (void)pthread_mutex_lock(&world.lock);
}

void world_unlock(void)
{
    (void)pthread_mutex_unlock(&world.lock);
}

/* splitmix64, by Sebastiano Vigna (public domain). */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Only while streams run: threads come in any order. */
static uint64_t drawn_below(uint64_t below)
{
    return mix(world.state += UINT64_C(0x9e3779b97f4a7c15)) % below;
}

void world_report(const char *format, ...)
{
    size_t len = strlen(world.reports);
    va_list list;

    va_start(list, format);
    (void)vsnprintf(world.reports + len, sizeof(world.reports) - len, format, list);
    va_end(list);
    len = strlen(world.reports);
    (void)snprintf(world.reports + len, sizeof(world.reports) - len, "\n");
}

uint32_t world_device(void)
{
    return thread_device;
}

uint32_t world_n_devices(void)
{
    return world.n_devices;
}

void world_set_device(uint32_t device)
{
    thread_device = device;
}

void world_count(int change)
{
    world.n_left_over += change;
}

static struct CUstream_st *add_stream(uint32_t device)
{
    struct CUstream_st *stream = calloc(1, sizeof(*stream)), **link = &world.streams;

    if (!stream) {
        abort();
    }
    stream->device = device;
    stream->number = world.n_streams[device]++;
    stream->priority = mix(world.seed + UINT64_C(0x9e3779b97f4a7c15) *
                                            (((uint64_t)device << 32) + stream->number + 1));
    /* By device: which thread came first must not matter. */
    while (*link && (*link)->device <= device) {
        link = &(*link)->next;
    }
    stream->next = *link;
    *link = stream;
    return stream;
}

struct CUstream_st *world_stream_of(void *handle)
{
    if (handle) {
        return handle;
    }
    if (!world.defaults[thread_device]) {
        world.defaults[thread_device] = add_stream(thread_device);
    }
    return world.defaults[thread_device];
}

struct work *world_work(enum work_kind kind, const char *name)
{
    struct work *work = calloc(1, sizeof(*work));

    if (!work) {
        abort();
    }
    work->kind = kind;
    work->name = name;
    return work;
}

void world_put(struct CUstream_st *stream, struct work *work)
{
    if (stream->last) {
        stream->last->next = work;
    } else {
        stream->first = work;
    }
    stream->last = work;
}

void record_unref(struct record *record)
{
    if (record && --record->n_refs == 0) {
        free(record);
    }
}

static void free_work(struct work *work)
{
    record_unref(work->record);
    if (work->item) {
        nccl_item_free(work->item);
    }
    free(work->params);
    free(work);
}

static void pop(struct CUstream_st *stream)
{
    struct work *work = stream->first;

    stream->first = work->next;
    stream->last = stream->first ? stream->last : NULL;
    free_work(work);
    world.n_run++;
}

/* What the head of a stream can do now: so many actions. */
static uint32_t n_actions(const struct CUstream_st *stream)
{
    const struct work *head = stream->first;

    if (!head) {
        return 0;
    }
    if (head->kind == WORK_WAIT) {
        return head->record->is_past;
    }
    if (head->kind != WORK_NCCL) {
        return 1;
    }
    return !nccl_is_started(head->item) || nccl_is_done(head->item) ? 1 : nccl_n_ready(head->item);
}

static void act(struct CUstream_st *stream, uint32_t i)
{
    struct work *head = stream->first;

    if (head->kind == WORK_NCCL && !nccl_is_done(head->item)) {
        if (!nccl_is_started(head->item)) {
            nccl_start(head->item);
        } else {
            nccl_transfer(head->item, i);
        }
        return;
    }
    if (head->kind == WORK_CALL) {
        head->call(head->params);
    }
    if (head->kind == WORK_RECORD) {
        head->record->is_past = true;
        head->record->at = world.n_run;
    }
    pop(stream);
}

/* One of all actions, each as likely as the others. False: none. */
static bool act_at_random(void)
{
    uint64_t n = 0, drawn;

    for (const struct CUstream_st *s = world.streams; s; s = s->next) {
        n += n_actions(s);
    }
    if (n == 0) {
        return false;
    }
    drawn = drawn_below(n);
    for (struct CUstream_st *s = world.streams; s; s = s->next) {
        uint32_t here = n_actions(s);

        if (drawn < here) {
            act(s, (uint32_t)drawn);
            return true;
        }
        drawn -= here;
    }
    return false;
}

static bool act_by_priority(void)
{
    struct CUstream_st *best = NULL;

    if (drawn_below(24) == 0) {
        for (struct CUstream_st *s = world.streams; s; s = s->next) {
            s->priority = drawn_below(UINT64_MAX);
        }
    }
    for (struct CUstream_st *s = world.streams; s; s = s->next) {
        if (n_actions(s) && (!best || s->priority > best->priority)) {
            best = s;
        }
    }
    if (best) {
        act(best, (uint32_t)drawn_below(n_actions(best)));
    }
    return best != NULL;
}

static void describe_streams(void)
{
    for (const struct CUstream_st *s = world.streams; s; s = s->next) {
        char text[160] = "waits for an event";

        if (s->first && s->first->kind == WORK_NCCL) {
            nccl_describe(s->first->item, text, sizeof(text));
        }
        if (s->first) {
            world_report("deadlock: device %u: a stream %s", s->device, text);
        }
    }
}

static bool all_have_come(void)
{
    for (const struct waiter *w = world.waiters; w; w = w->next) {
        if (!w->is_over && !w->is_done(w->arg)) {
            return false;
        }
    }
    return true;
}

/* All threads wait. */
static void run_streams(void)
{
    bool any = false;

    memory_open(true);
    while (!all_have_come() && (world.by_priority ? act_by_priority() : act_at_random())) {
    }
    memory_open(false);
    for (struct waiter *w = world.waiters; w; w = w->next) {
        if (!w->is_over && w->is_done(w->arg)) {
            any = w->is_over = w->has_come = true;
        }
    }
    if (!any) {
        if (world.n_waiters && !strstr(world.reports, "deadlock")) {
            describe_streams();
        }
        for (struct waiter *w = world.waiters; w; w = w->next) {
            w->is_over = true;
        }
    }
    (void)pthread_cond_broadcast(&world.changed);
}

static uint32_t n_open_waits(void)
{
    uint32_t n = 0;

    for (const struct waiter *w = world.waiters; w; w = w->next) {
        n += !w->is_over;
    }
    return n;
}

static void remove_waiter(const struct waiter *waiter)
{
    struct waiter **link = &world.waiters;

    while (*link != waiter) {
        link = &(*link)->next;
    }
    *link = waiter->next;
    world.n_waiters--;
}

/* A thread that waits for another one outside of the fake cannot be seen: after a while streams run
 * without it. */
static bool wait_for_change(void)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += STALL_MS / 1000;
    return pthread_cond_timedwait(&world.changed, &world.lock, &until) == 0;
}

bool world_wait(bool (*is_done)(const void *arg), const void *arg)
{
    struct waiter waiter = {.is_done = is_done, .arg = arg, .next = world.waiters};

    if (is_done(arg)) {
        return true;
    }
    world.waiters = &waiter;
    world.n_waiters++;
    while (!waiter.is_over) {
        if (n_open_waits() >= world.n_threads || !wait_for_change()) {
            if (!waiter.is_over) {
                run_streams();
            }
        }
    }
    remove_waiter(&waiter);
    return waiter.has_come;
}

bool world_is_drained(const void *device)
{
    for (const struct CUstream_st *s = world.streams; s; s = s->next) {
        if (s->device == *(const uint32_t *)device && s->first) {
            return false;
        }
    }
    return true;
}

void fake_begin(uint64_t seed, uint32_t n_threads, uint32_t n_devices)
{
    world_lock();
    world.seed = world.state = seed;
    world.by_priority = seed & 1;
    world.n_threads = n_threads;
    world.n_devices = n_devices;
    memset(world.n_streams, 0, sizeof(world.n_streams));
    world.n_run = 0;
    world.n_left_over = 0;
    world.reports[0] = '\0';
    world_unlock();
}

static void free_stream(struct CUstream_st *stream)
{
    while (stream->first) {
        pop(stream);
    }
    free(stream);
}

const char *fake_end(void)
{
    uint32_t n_memories, n_comms;

    world_lock();
    while (world.streams) {
        struct CUstream_st *stream = world.streams;

        world.streams = stream->next;
        free_stream(stream);
    }
    memset(world.defaults, 0, sizeof(world.defaults));
    n_comms = nccl_free_all();
    n_memories = memory_free_all();
    if (n_memories || n_comms || world.n_left_over) {
        world_report("left over: %u allocations, %u communicators, %ld streams and events",
                     n_memories, n_comms, world.n_left_over);
    }
    world_unlock();
    return world.reports;
}

void fake_thread_end(void)
{
    world_lock();
    world.n_threads--;
    (void)pthread_cond_broadcast(&world.changed);
    world_unlock();
}

const char *fake_reports(void)
{
    return world.reports;
}

uint64_t fake_n_run(void)
{
    return world.n_run;
}

void fake_stream_call(void *handle, const char *name, void (*call)(const void *params),
                      const void *params, size_t bytes)
{
    struct work *work;

    world_lock();
    work = world_work(WORK_CALL, name);
    work->call = call;
    work->params = malloc(bytes ? bytes : 1);
    if (!work->params) {
        abort();
    }
    memcpy(work->params, params, bytes);
    world_put(world_stream_of(handle), work);
    world_unlock();
}

bool fake_check_device(const char *what, const void *at, size_t bytes)
{
    bool is_host = false;

    if (memory_holds(at, bytes, &is_host) && !is_host) {
        return true;
    }
    world_report("%s: %p and %zu bytes are not in one allocation of a device", what, at, bytes);
    return false;
}

struct CUstream_st *world_new_stream(void)
{
    return add_stream(thread_device);
}

void fake_report(const char *format, ...)
{
    char text[256];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    world_report("%s", text);
}

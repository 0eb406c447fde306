/*
 * Planning ahead.
 *
 * An entry is a step's plan and its state: QUEUED (someone waits, all makers are busy), RUNNING (in
 * the making on another thread, which touches nothing but the entry's result), READY (kept, in the
 * order of last use). An entry that failed is gone once its waiters have heard of it: the next who
 * asks tries again. Waiters are served first; makers that are free work ahead of the step that a
 * stream asked for last, so that also streams that fell far behind the others run ahead of their
 * needs.
 *
 * Digests are kept apart, in a table by step modulo its size: workers report steps long after their
 * plans were dropped.
 */
#include "job/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ckd.h"

#define N_BUCKETS 64
#define N_DIGESTS 4096

#define NOTHING_AHEAD UINT64_MAX

/* Where plans come from, until the last that is in the making has come. */
struct source {
    struct pipeline_source source;
    size_t n_refs;
};

enum entry_state { ENTRY_QUEUED, ENTRY_RUNNING, ENTRY_READY };

struct pipeline_entry {
    struct pipeline *pipeline;
    uint64_t step;
    enum entry_state state;
    struct source *source;              /* RUNNING: a reference */
    bool is_stale;                      /* RUNNING, for a source that the step is no longer of */
    struct pipeline_entry *in_bucket;   /* the next one there */
    struct pipeline_entry *prev, *next; /* in the queue, or among the kept ones */
    struct pipeline_wait waits;         /* head of a ring */
    struct planned *planned;            /* READY; written by the maker */
    struct skrull_error err;            /* written by the maker */
};

struct digest {
    uint64_t step_plus_1; /* 0: none */
    uint8_t digest[SKRULL_DIGEST_SIZE];
};

struct pipeline {
    struct source *source;
    struct source *next_source; /* prepared; NULL: none */
    struct pipeline_options options;
    struct pipeline_entry *buckets[N_BUCKETS];
    struct pipeline_entry queue; /* heads of rings: first come first served, */
    struct pipeline_entry kept;  /* least recently used first */
    size_t n_kept, n_kept_bytes;
    struct pipeline *prev_holder, *next_holder; /* of options.memory, where it keeps something */
    uint32_t n_running;
    uint64_t ahead_from; /* the step after the one that a stream asked for last */
    size_t last_bytes;   /* of the plan made last: what the next ones will need */
    bool is_closed;
    struct digest *digests; /* [N_DIGESTS]; NULL: none yet */
};

static struct source *source_new(const struct pipeline_source *from)
{
    struct source *source = calloc(1, sizeof(*source));

    if (source) {
        source->source = *from;
        source->n_refs = 1;
    }
    return source;
}

static struct source *source_ref(struct source *source)
{
    source->n_refs++;
    return source;
}

static void source_unref(struct source *source)
{
    if (source && --source->n_refs == 0) {
        source->source.release(source->source.arg);
        free(source);
    }
}

/* --- rings --- */

static void ring_init(struct pipeline_entry *head)
{
    head->prev = head->next = head;
}

static void ring_append(struct pipeline_entry *head, struct pipeline_entry *entry)
{
    entry->prev = head->prev;
    entry->next = head;
    head->prev->next = entry;
    head->prev = entry;
}

static void ring_remove(struct pipeline_entry *entry)
{
    entry->prev->next = entry->next;
    entry->next->prev = entry->prev;
}

static bool has_waits(const struct pipeline_entry *entry)
{
    return entry->waits.next != &entry->waits;
}

static void wait_append(struct pipeline_entry *entry, struct pipeline_wait *wait)
{
    wait->entry = entry;
    wait->next = &entry->waits;
    wait->prev = entry->waits.prev;
    wait->prev->next = wait;
    entry->waits.prev = wait;
}

static void wait_remove(struct pipeline_wait *wait)
{
    wait->prev->next = wait->next;
    wait->next->prev = wait->prev;
    wait->entry = NULL;
}

/* --- entries --- */

static struct pipeline_entry **bucket_of(struct pipeline *pipeline, uint64_t step)
{
    return &pipeline->buckets[step % N_BUCKETS];
}

static struct pipeline_entry *entry_find(const struct pipeline *pipeline, uint64_t step)
{
    struct pipeline_entry *entry = pipeline->buckets[step % N_BUCKETS];

    while (entry && entry->step != step) {
        entry = entry->in_bucket;
    }
    return entry;
}

static struct pipeline_entry *entry_new(struct pipeline *pipeline, uint64_t step)
{
    struct pipeline_entry *entry = calloc(1, sizeof(*entry));
    struct pipeline_entry **bucket = bucket_of(pipeline, step);

    if (!entry) {
        return NULL;
    }
    entry->pipeline = pipeline;
    entry->step = step;
    entry->waits.prev = entry->waits.next = &entry->waits;
    entry->in_bucket = *bucket;
    *bucket = entry;
    return entry;
}

/* Takes the entry out of the table: it is not found any more. */
static void entry_unlink(struct pipeline_entry *entry)
{
    struct pipeline_entry **link = bucket_of(entry->pipeline, entry->step);

    while (*link != entry) {
        link = &(*link)->in_bucket;
    }
    *link = entry->in_bucket;
}

/* Of an entry that is in no ring. */
static void entry_free(struct pipeline_entry *entry)
{
    entry_unlink(entry);
    planned_unref(entry->planned);
    free(entry);
}

static void holder_add(struct pipeline_memory *memory, struct pipeline *pipeline)
{
    pipeline->prev_holder = NULL;
    pipeline->next_holder = memory->first;
    if (memory->first) {
        memory->first->prev_holder = pipeline;
    }
    memory->first = pipeline;
    memory->n_holders++;
}

static void holder_remove(struct pipeline_memory *memory, struct pipeline *pipeline)
{
    if (pipeline->prev_holder) {
        pipeline->prev_holder->next_holder = pipeline->next_holder;
    } else {
        memory->first = pipeline->next_holder;
    }
    if (pipeline->next_holder) {
        pipeline->next_holder->prev_holder = pipeline->prev_holder;
    }
    memory->n_holders--;
}

static void kept_remove(struct pipeline_entry *entry)
{
    struct pipeline *pipeline = entry->pipeline;
    struct pipeline_memory *memory = pipeline->options.memory;

    ring_remove(entry);
    pipeline->n_kept--;
    pipeline->n_kept_bytes -= entry->planned->n_bytes;
    if (memory) {
        memory->n_bytes -= entry->planned->n_bytes;
        if (pipeline->n_kept == 0) {
            holder_remove(memory, pipeline);
        }
    }
}

static void kept_append(struct pipeline_entry *entry)
{
    struct pipeline *pipeline = entry->pipeline;
    struct pipeline_memory *memory = pipeline->options.memory;

    ring_append(&pipeline->kept, entry);
    pipeline->n_kept++;
    pipeline->n_kept_bytes += entry->planned->n_bytes;
    if (memory) {
        memory->n_bytes += entry->planned->n_bytes;
        if (pipeline->n_kept == 1) {
            holder_add(memory, pipeline);
        }
    }
}

static void drop_oldest(struct pipeline *pipeline)
{
    struct pipeline_entry *oldest = pipeline->kept.next;

    kept_remove(oldest);
    entry_free(oldest);
}

/* Who keeps most, but for the newest plan of `pipeline`; NULL: nobody anything. */
static struct pipeline *largest_holder(const struct pipeline *pipeline)
{
    struct pipeline *largest = NULL;
    size_t most = 0;

    for (struct pipeline *at = pipeline->options.memory->first; at; at = at->next_holder) {
        size_t n_bytes = at->n_kept_bytes;

        if (at == pipeline) {
            n_bytes = at->n_kept > 1 ? n_bytes - at->kept.prev->planned->n_bytes : 0;
        }
        if (n_bytes > most) {
            most = n_bytes;
            largest = at;
        }
    }
    return largest;
}

/* Drops what was not used for longest, of this job and then of whoever keeps most; the newest
 * stays, however large it is. */
static void kept_trim(struct pipeline *pipeline)
{
    const struct pipeline_memory *memory = pipeline->options.memory;

    while (pipeline->n_kept > 1 && (pipeline->n_kept > pipeline->options.max_steps ||
                                    pipeline->n_kept_bytes > pipeline->options.max_bytes)) {
        drop_oldest(pipeline);
    }
    while (memory && memory->n_bytes > memory->max_bytes) {
        struct pipeline *largest = largest_holder(pipeline);

        if (!largest) {
            return;
        }
        drop_oldest(largest);
    }
}

/* --- making, on another thread --- */

static void work(void *task)
{
    struct pipeline_entry *entry = (struct pipeline_entry *)task;
    int code = planned_make(&entry->source->source, entry->step, &entry->planned, &entry->err);

    if (code < 0) {
        entry->err.code = code;
    }
}

/* --- this thread again --- */

static void notify_waits(struct pipeline_entry *entry, struct planned *planned,
                         const struct skrull_error *err)
{
    while (has_waits(entry)) {
        struct pipeline_wait *wait = entry->waits.next;

        wait_remove(wait);
        wait->done(wait->arg, planned, err);
    }
}

/* Tells the waiters and forgets the entry; who asks again from there gets a new one. */
static void entry_fail(struct pipeline_entry *entry, const struct skrull_error *err)
{
    entry_unlink(entry);
    notify_waits(entry, NULL, err);
    free(entry);
}

static void remember_digest(struct pipeline *pipeline, const struct skrull_plan *plan)
{
    struct digest *digest;

    if (!pipeline->digests) { /* most jobs of many are never planned */
        pipeline->digests = calloc(N_DIGESTS, sizeof(*pipeline->digests));
    }
    if (!pipeline->digests) {
        return; /* only a convenience: who asks has the step planned again */
    }
    digest = &pipeline->digests[plan->step % N_DIGESTS];
    digest->step_plus_1 = plan->step + 1;
    memcpy(digest->digest, plan->digest, SKRULL_DIGEST_SIZE);
}

bool pipeline_digest(const struct pipeline *pipeline, uint64_t step,
                     uint8_t ret_digest[SKRULL_DIGEST_SIZE])
{
    const struct digest *digest = pipeline->digests ? &pipeline->digests[step % N_DIGESTS] : NULL;

    if (!digest || digest->step_plus_1 == 0 || digest->step_plus_1 - 1 != step) {
        return false;
    }
    memcpy(ret_digest, digest->digest, SKRULL_DIGEST_SIZE);
    return true;
}

bool pipeline_has(const struct pipeline *pipeline, uint64_t step)
{
    const struct pipeline_entry *entry = entry_find(pipeline, step);

    return entry && entry->state == ENTRY_READY;
}

static void pipeline_free(struct pipeline *pipeline)
{
    while (pipeline->kept.next != &pipeline->kept) {
        struct pipeline_entry *entry = pipeline->kept.next;

        kept_remove(entry);
        entry_free(entry);
    }
    source_unref(pipeline->next_source);
    source_unref(pipeline->source);
    free(pipeline->digests);
    free(pipeline);
}

static void pump(struct pipeline *pipeline);

/* A plan of a source before: whoever waits gets another. */
static void make_again(struct pipeline_entry *entry)
{
    struct pipeline *pipeline = entry->pipeline;

    planned_unref(entry->planned);
    entry->planned = NULL;
    entry->err = (struct skrull_error){0};
    entry->is_stale = false;
    if (has_waits(entry)) {
        entry->state = ENTRY_QUEUED;
        ring_append(&pipeline->queue, entry);
    } else {
        entry_free(entry);
    }
    pump(pipeline);
}

static void done(void *task)
{
    struct pipeline_entry *entry = (struct pipeline_entry *)task;
    struct pipeline *pipeline = entry->pipeline;

    pipeline->n_running--;
    source_unref(entry->source);
    entry->source = NULL;
    if (pipeline->is_closed) {
        entry_free(entry);
        if (pipeline->n_running == 0) {
            pipeline_free(pipeline);
        }
        return;
    }
    if (entry->is_stale) {
        make_again(entry);
        return;
    }
    if (entry->planned) {
        pipeline->last_bytes = entry->planned->n_bytes;
    }
    pump(pipeline);
    if (!entry->planned) {
        struct skrull_error err = entry->err;

        entry_fail(entry, &err);
        return;
    }
    remember_digest(pipeline, entry->planned->plan);
    entry->state = ENTRY_READY;
    kept_append(entry);
    notify_waits(entry, entry->planned, NULL);
    kept_trim(pipeline);
}

static void start(struct pipeline_entry *entry)
{
    struct pipeline *pipeline = entry->pipeline;
    struct skrull_error err = {0};

    entry->state = ENTRY_RUNNING;
    entry->source = source_ref(pipeline->source);
    pipeline->n_running++;
    if (pipeline->options.run(pipeline->options.run_arg, work, done, entry) < 0) {
        pipeline->n_running--;
        source_unref(entry->source);
        (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        entry_fail(entry, &err);
    }
}

/* Steps to make ahead: never so many that they would drive each other out before they are used. */
static uint64_t ahead_steps(const struct pipeline *pipeline)
{
    const struct pipeline_options *options = &pipeline->options;
    const struct pipeline_memory *memory = options->memory;
    size_t room = options->max_steps / 2, max_bytes = options->max_bytes;

    if (memory && memory->n_holders > 0 && memory->max_bytes / memory->n_holders < max_bytes) {
        max_bytes = memory->max_bytes / memory->n_holders; /* a fair share */
    }
    if (pipeline->last_bytes > 0 && max_bytes / 2 / pipeline->last_bytes < room) {
        room = max_bytes / 2 / pipeline->last_bytes;
    }
    return room < options->ahead ? room : options->ahead;
}

/* Starts what waits, then what will be wanted, as far as makers are free. */
static void pump(struct pipeline *pipeline)
{
    uint64_t end = sat_add_u64(pipeline->ahead_from, ahead_steps(pipeline));

    while (pipeline->n_running < pipeline->options.max_running &&
           pipeline->queue.next != &pipeline->queue) {
        struct pipeline_entry *entry = pipeline->queue.next;

        ring_remove(entry);
        start(entry);
    }
    end = end < pipeline->source->source.steps ? end : pipeline->source->source.steps;
    for (uint64_t step = pipeline->ahead_from; step < end; step++) {
        struct pipeline_entry *entry;

        if (pipeline->n_running >= pipeline->options.max_running) {
            return;
        }
        if (entry_find(pipeline, step)) {
            continue;
        }
        entry = entry_new(pipeline, step);
        if (!entry) {
            return; /* only a convenience */
        }
        start(entry);
    }
}

int pipeline_new(const struct pipeline_source *source, const struct pipeline_options *options,
                 struct pipeline **ret_pipeline, struct skrull_error *err)
{
    struct pipeline *pipeline = calloc(1, sizeof(*pipeline));

    assert(options->max_running > 0);
    if (pipeline) {
        pipeline->source = source_new(source);
    }
    if (!pipeline || !pipeline->source) {
        free(pipeline);
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    pipeline->options = *options;
    pipeline->ahead_from = NOTHING_AHEAD;
    ring_init(&pipeline->queue);
    ring_init(&pipeline->kept);
    *ret_pipeline = pipeline;
    return 0;
}

int pipeline_prepare(struct pipeline *pipeline, const struct pipeline_source *source,
                     struct skrull_error *err)
{
    assert(!pipeline->next_source);
    pipeline->next_source = source_new(source);
    return pipeline->next_source
               ? 0
               : skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
}

void pipeline_drop(struct pipeline *pipeline)
{
    source_unref(pipeline->next_source);
    pipeline->next_source = NULL;
}

void pipeline_revise(struct pipeline *pipeline, uint64_t from_step)
{
    assert(pipeline->next_source);
    for (size_t i = 0; i < N_BUCKETS; i++) {
        for (struct pipeline_entry *entry = pipeline->buckets[i], *next; entry; entry = next) {
            next = entry->in_bucket;
            if (entry->step < from_step) {
                continue;
            }
            entry->is_stale = entry->state == ENTRY_RUNNING;
            if (entry->state == ENTRY_READY) {
                kept_remove(entry);
                entry_free(entry);
            }
        }
    }
    for (size_t i = 0; pipeline->digests && i < N_DIGESTS; i++) {
        if (pipeline->digests[i].step_plus_1 > from_step) {
            pipeline->digests[i].step_plus_1 = 0;
        }
    }
    if (pipeline->ahead_from >= pipeline->source->source.steps) {
        pipeline->ahead_from = NOTHING_AHEAD; /* nobody came so far yet */
    }
    source_unref(pipeline->source);
    pipeline->source = pipeline->next_source;
    pipeline->next_source = NULL;
}

void pipeline_close(struct pipeline *pipeline, const struct skrull_error *err)
{
    if (!pipeline) {
        return;
    }
    pipeline->is_closed = true;
    pipeline->n_running++; /* keeps it until the end of this function */
    for (size_t i = 0; i < N_BUCKETS; i++) {
        for (struct pipeline_entry *entry = pipeline->buckets[i], *next; entry; entry = next) {
            next = entry->in_bucket;
            notify_waits(entry, NULL, err);
            if (entry->state == ENTRY_QUEUED) {
                ring_remove(entry);
                entry_free(entry);
            }
        }
    }
    pipeline->n_running--;
    if (pipeline->n_running == 0) {
        pipeline_free(pipeline);
    }
}

void pipeline_ask(struct pipeline *pipeline, uint64_t step, bool is_stream,
                  struct pipeline_wait *wait)
{
    struct pipeline_entry *entry = entry_find(pipeline, step);
    struct skrull_error err = {0};

    assert(!wait->entry && !pipeline->is_closed);
    if (is_stream) {
        pipeline->ahead_from = step + 1;
    }
    if (entry && entry->state == ENTRY_READY) {
        struct planned *planned = planned_ref(entry->planned);

        kept_remove(entry);
        kept_append(entry);
        pump(pipeline);
        wait->done(wait->arg, planned, NULL);
        planned_unref(planned);
        return;
    }
    if (!entry) {
        entry = entry_new(pipeline, step);
        if (!entry) {
            (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
            wait->done(wait->arg, NULL, &err);
            return;
        }
        ring_append(&pipeline->queue, entry);
    }
    wait_append(entry, wait);
    pump(pipeline);
}

void pipeline_cancel(struct pipeline_wait *wait)
{
    struct pipeline_entry *entry = wait->entry;

    if (!entry) {
        return;
    }
    wait_remove(wait);
    if (entry->state == ENTRY_QUEUED && !has_waits(entry)) {
        ring_remove(entry);
        entry_free(entry);
    }
}

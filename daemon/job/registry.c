/*
 * The table of jobs: published ones in an array sorted by name, so that pages and lookups are
 * binary searches; reserved ones in a short list beside it. Room for a publication is made when its
 * name is reserved, so publishing cannot fail after the store has the job. Loop thread only.
 */
#include "job/registry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "job/job.h"
#include "job/progress.h"
#include "job/spec.h"

#define DEFAULT_PAGE_SIZE 100
#define MAX_PAGE_SIZE 1000
#define MAX_SPEC_BYTES ((size_t)64 << 20)

struct registry {
    struct registry_entry **entries; /* [n_entries] published, by name */
    size_t n_entries;
    struct registry_entry **reserved; /* [n_reserved] */
    size_t n_reserved;
    size_t n_allocated; /* of both arrays; at least n_entries + n_reserved */
};

struct registry *registry_new(void)
{
    return calloc(1, sizeof(struct registry));
}

void registry_free(struct registry *registry)
{
    size_t i;

    if (!registry) {
        return;
    }
    for (i = 0; i < registry->n_entries; i++) {
        registry_entry_unref(registry->entries[i]);
    }
    for (i = 0; i < registry->n_reserved; i++) {
        registry_entry_unref(registry->reserved[i]);
    }
    free(registry->entries);
    free(registry->reserved);
    free(registry);
}

struct registry_entry *registry_entry_ref(struct registry_entry *entry)
{
    entry->n_refs++;
    return entry;
}

void registry_entry_unref(struct registry_entry *entry)
{
    if (!entry) {
        return;
    }
    assert(entry->n_refs);
    if (--entry->n_refs) {
        return;
    }
    if (entry->job) {
        job_unref(entry->job);
    }
    progress_free(entry->progress);
    arena_free(entry->arena);
    free(entry);
}

/* An entry with one reference; NULL: out of memory. */
static struct registry_entry *entry_new(const struct skrull_job *spec, const char *request_id)
{
    struct registry_entry *entry = calloc(1, sizeof(*entry));

    if (!entry) {
        return NULL;
    }
    entry->n_refs = 1;
    entry->arena = arena_new(MAX_SPEC_BYTES);
    if (entry->arena) {
        entry->created = spec_copy(entry->arena, spec);
        entry->request_id = arena_strdup(entry->arena, request_id ? request_id : "");
    }
    if (!entry->created || !entry->request_id) {
        registry_entry_unref(entry);
        return NULL;
    }
    entry->spec = entry->created;
    entry->name = entry->created->name;
    entry->uid = entry->created->uid ? entry->created->uid : "";
    return entry;
}

/* The place of `name`, or where it would stand. */
static size_t place_of(const struct registry *registry, const char *name)
{
    size_t low = 0, high = registry->n_entries, middle;

    while (low < high) {
        middle = low + (high - low) / 2;
        if (strcmp(registry->entries[middle]->name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct registry_entry *find(const struct registry *registry, const char *name)
{
    size_t i = place_of(registry, name);

    if (i < registry->n_entries && strcmp(registry->entries[i]->name, name) == 0) {
        return registry->entries[i];
    }
    return NULL;
}

static struct registry_entry *find_request(struct registry_entry *const *entries, size_t n,
                                           const char *request_id)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (strcmp(entries[i]->request_id, request_id) == 0) {
            return entries[i];
        }
    }
    return NULL;
}

static int under_way(const char *name, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_ABORTED,
                            "job %s is being created by another request: try again", name);
}

/* Did this request come before? Returns 0: no; REGISTRY_REPEATED, ABORTED or INVALID_ARGUMENT. */
static int check_request(const struct registry *registry, const struct skrull_job *spec,
                         const char *request_id, struct registry_entry **ret_entry,
                         struct skrull_error *err)
{
    struct registry_entry *published, *first;

    if (!request_id || !*request_id) {
        return 0;
    }
    published = find_request(registry->entries, registry->n_entries, request_id);
    first =
        published ? published : find_request(registry->reserved, registry->n_reserved, request_id);
    if (!first) {
        return 0;
    }
    if (!spec_is_same(first->created, spec)) {
        return skrull_error_because(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    SKRULL_REASON_REQUEST_ID_REUSED, 0,
                                    "request_id: %s was used to create job %s with another "
                                    "specification: send a new request_id for a new job",
                                    request_id, first->name);
    }
    if (!published) {
        return under_way(spec->name, err);
    }
    *ret_entry = published;
    return REGISTRY_REPEATED;
}

static int check_name(const struct registry *registry, const char *name, struct skrull_error *err)
{
    size_t i;

    if (find(registry, name)) {
        return skrull_error_because(
            err, SKRULL_ERR_ALREADY_EXISTS, SKRULL_REASON_JOB_EXISTS, 0,
            "job %s exists already: choose another name, or delete it first", name);
    }
    for (i = 0; i < registry->n_reserved; i++) {
        if (strcmp(registry->reserved[i]->name, name) == 0) {
            return under_way(name, err);
        }
    }
    return 0;
}

/* Makes both arrays fit one entry more. */
static int make_room(struct registry *registry)
{
    size_t n = registry->n_entries + registry->n_reserved, n_wanted;
    struct registry_entry **entries;

    if (n < registry->n_allocated) {
        return 0;
    }
    n_wanted = n ? n * 2 : 16;
    entries = realloc(registry->entries, n_wanted * sizeof(struct registry_entry *));
    if (!entries) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    registry->entries = entries;
    entries = realloc(registry->reserved, n_wanted * sizeof(struct registry_entry *));
    if (!entries) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    registry->reserved = entries;
    registry->n_allocated = n_wanted;
    return 0;
}

int registry_reserve(struct registry *registry, const struct skrull_job *spec,
                     const char *request_id, struct registry_entry **ret_entry,
                     struct skrull_error *err)
{
    struct registry_entry *entry;
    int result = check_request(registry, spec, request_id, ret_entry, err);

    if (result == 0) {
        result = check_name(registry, spec->name, err);
    }
    if (result) {
        return result;
    }
    if (registry->n_entries + registry->n_reserved >= REGISTRY_MAX_JOBS) {
        return skrull_error_because(
            err, SKRULL_ERR_RESOURCE_EXHAUSTED, SKRULL_REASON_TOO_MANY_JOBS, REGISTRY_MAX_JOBS,
            "the daemon has %d jobs, which is its limit: delete some", REGISTRY_MAX_JOBS);
    }
    entry = make_room(registry) ? NULL : entry_new(spec, request_id);
    if (!entry) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "no memory for job %s",
                                spec->name);
    }
    registry->reserved[registry->n_reserved++] = entry;
    *ret_entry = entry;
    return 0;
}

int registry_make_progress(const struct job *job, struct progress **ret_progress,
                           struct skrull_error *err)
{
    const uint32_t n = job_n_revisions(job);
    struct progress_span *spans = calloc(n, sizeof(*spans));
    int result = 0;

    if (!spans) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "no memory for job %s",
                                job_spec(job)->name);
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct skrull_job *spec = job_revision_at(job, i, &spans[i].first_step);

        spans[i].n_ranks = spec->parallel.dp * spec->parallel.cp; /* job_complete bounds it */
    }
    spans[0].first_step = 0;
    result = progress_new(spans, n, job_spec(job)->info.steps, ret_progress, err);
    free(spans);
    return result;
}

int registry_prepare(struct registry_entry *entry, struct job *job, struct skrull_error *err)
{
    assert(!entry->job && !entry->progress);
    entry->spec = job_spec(job);
    entry->job = job_ref(job);
    return registry_make_progress(job, &entry->progress, err);
}

void registry_revise(struct registry_entry *entry, struct job *job, struct progress *progress)
{
    struct job *old = entry->job;

    progress_take(progress, entry->progress);
    progress_free(entry->progress);
    entry->progress = progress;
    entry->job = job_ref(job);
    entry->spec = job_spec(job);
    job_unref(old);
}

static void unreserve(struct registry *registry, const struct registry_entry *entry)
{
    size_t i = 0;

    while (i < registry->n_reserved && registry->reserved[i] != entry) {
        i++;
    }
    assert(i < registry->n_reserved);
    registry->reserved[i] = registry->reserved[--registry->n_reserved];
}

void registry_publish(struct registry *registry, struct registry_entry *entry)
{
    size_t at = place_of(registry, entry->name);

    assert(entry->job || entry->why_broken.code);
    unreserve(registry, entry);
    memmove(&registry->entries[at + 1], &registry->entries[at],
            (registry->n_entries - at) * sizeof(struct registry_entry *));
    registry->entries[at] = entry;
    registry->n_entries++;
}

void registry_cancel(struct registry *registry, struct registry_entry *entry)
{
    unreserve(registry, entry);
    entry->is_deleted = true;
    registry_entry_unref(entry);
}

/* A job that cannot be opened, as the store has it. */
static int load_broken(struct registry_entry *entry, const struct registry_saved *saved,
                       struct skrull_error *err)
{
    entry->why_broken = *saved->why;
    entry->spec = spec_copy(entry->arena, saved->newest);
    return entry->spec ? 0
                       : skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                          "no memory for job %s", entry->name);
}

int registry_load(struct registry *registry, const struct registry_saved *saved, struct job *job,
                  struct registry_entry **ret_entry, struct skrull_error *err)
{
    struct registry_entry *entry;
    /* No check of the request_id: whatever the store holds was accepted once. */
    int result = registry_reserve(registry, saved->created, NULL, &entry, err);

    if (result) {
        return result;
    }
    entry->request_id = arena_strdup(entry->arena, saved->request_id ? saved->request_id : "");
    if (!entry->request_id) {
        result = skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "no memory for job %s",
                                  entry->name);
    } else if (job) {
        result = registry_prepare(entry, job, err);
    } else {
        result = load_broken(entry, saved, err);
    }
    if (result) {
        registry_cancel(registry, entry);
        return result;
    }
    entry->given_out_below = saved->given_out_below;
    registry_publish(registry, entry);
    *ret_entry = entry;
    return 0;
}

int registry_find(const struct registry *registry, const char *name,
                  struct registry_entry **ret_entry, struct skrull_error *err)
{
    struct registry_entry *entry = find(registry, name);

    if (!entry) {
        return skrull_error_because(err, SKRULL_ERR_NOT_FOUND, SKRULL_REASON_JOB_NOT_FOUND, 0,
                                    "no job is named %s", name);
    }
    *ret_entry = entry;
    return 0;
}

void registry_remove(struct registry *registry, struct registry_entry *entry)
{
    size_t at = place_of(registry, entry->name);

    assert(at < registry->n_entries && registry->entries[at] == entry);
    registry->n_entries--;
    memmove(&registry->entries[at], &registry->entries[at + 1],
            (registry->n_entries - at) * sizeof(struct registry_entry *));
    entry->is_deleted = true;
    registry_entry_unref(entry);
}

int registry_entry_job(const struct registry_entry *entry, struct job **ret_job,
                       struct skrull_error *err)
{
    if (entry->is_deleted) {
        return skrull_error_because(err, SKRULL_ERR_NOT_FOUND, SKRULL_REASON_JOB_DELETED, 0,
                                    "job %s was deleted", entry->name);
    }
    if (!entry->job) {
        return skrull_error_because(err, SKRULL_ERR_FAILED_PRECONDITION, SKRULL_REASON_JOB_BROKEN,
                                    0, "job %s has no plans: %s", entry->name,
                                    entry->why_broken.message);
    }
    *ret_job = entry->job;
    return 0;
}

int registry_entry_check_uid(const struct registry_entry *entry, const char *uid,
                             struct skrull_error *err)
{
    if (!uid || !*uid || strcmp(uid, entry->uid) == 0) {
        return 0;
    }
    return skrull_error_because(err, SKRULL_ERR_FAILED_PRECONDITION, SKRULL_REASON_UID_MISMATCH, 0,
                                "uid: job %s has uid %s, not %s: it was created anew, or this is "
                                "another daemon",
                                entry->name, entry->uid, uid);
}

size_t registry_count(const struct registry *registry)
{
    return registry->n_entries;
}

struct registry_entry *registry_at(const struct registry *registry, size_t i)
{
    assert(i < registry->n_entries);
    return registry->entries[i];
}

/* Could a page have ended with this name? */
static bool is_name(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");

    return len > 0 && len <= 63 && text[len] == '\0' && text[0] != '-' && text[len - 1] != '-';
}

int registry_page(const struct registry *registry, uint64_t page_size, const char *page_token,
                  struct registry_page *ret_page, struct skrull_error *err)
{
    uint64_t n_wanted = page_size == 0              ? DEFAULT_PAGE_SIZE
                        : page_size > MAX_PAGE_SIZE ? MAX_PAGE_SIZE
                                                    : page_size;
    struct registry_page page = {.next_page_token = ""};

    if (page_token && *page_token) {
        if (!is_name(page_token)) {
            return skrull_error_because(err, SKRULL_ERR_INVALID_ARGUMENT,
                                        SKRULL_REASON_PAGE_TOKEN_INVALID, 0,
                                        "page_token: not one that ListJobs gave: start without it");
        }
        page.first = place_of(registry, page_token);
        if (find(registry, page_token)) {
            page.first++;
        }
    }
    page.n = registry->n_entries - page.first;
    if (page.n > n_wanted) {
        page.n = (size_t)n_wanted;
        page.next_page_token = registry->entries[page.first + page.n - 1]->name;
    }
    *ret_page = page;
    return 0;
}

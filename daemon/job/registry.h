/*
 * The daemon's table of jobs, in memory, by name. Used on the loop thread only.
 *
 * A job comes into being in three steps, because its index is read and its row is saved on other
 * threads: registry_reserve takes the name, registry_prepare binds the opened job, registry_publish
 * makes it visible once the store has it; registry_cancel gives the name back at any point before.
 * Reserved names are in no listing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>
#include <skrull/job.h>

struct arena;
struct job;
struct hub;
struct progress;
struct registry;

/* One job; reference-counted, so streams may keep it past its deletion. Fields are for reading,
 * save those said to be the daemon's. */
struct registry_entry {
    /* Constant over the entry's life, so other threads may read them. */
    const char *name, *uid;           /* uid "": none */
    const char *request_id;           /* "": none */
    const struct skrull_job *created; /* completed, as it was asked for: the first revision */

    const struct skrull_job *spec;  /* of the newest revision; published ones have uid, revision and info */
    struct job *job;                /* owned reference; NULL: reserved only, or broken */
    struct skrull_error why_broken; /* code 0: not broken */
    struct progress
        *progress; /* owned; NULL before registry_prepare and for broken jobs */
    bool is_deleted;

    /* The daemon's. */
    uint64_t given_out_below;  /* durable: plans of smaller steps may have been sent */
    bool is_updating;          /* a revision is under way; it begins at updating_from */
    uint64_t updating_from;
    struct hub *hub;          /* borrowed; NULL for broken jobs */

    /* The registry's. */
    struct arena *arena; /* owns the texts and `created` */
    size_t n_refs;
};

/* NULL: out of memory. */
struct registry *registry_new(void);

/* Drops its references; NULL is fine. */
void registry_free(struct registry *registry);

/*
 * Takes the name of a job to be created; `spec` is completed and copied. Returns 0: *ret_entry is
 * reserved, the registry's (borrowed). REGISTRY_REPEATED: *ret_entry is the job that the same
 * request created before (same request_id, same spec). ALREADY_EXISTS: the name is taken. ABORTED:
 * its creation is under way. INVALID_ARGUMENT: the request_id came with another spec before.
 * RESOURCE_EXHAUSTED: too many jobs, or out of memory.
 */
#define REGISTRY_REPEATED 1
#define REGISTRY_MAX_JOBS 100000
int registry_reserve(struct registry *registry, const struct skrull_job *spec,
                     const char *request_id, struct registry_entry **ret_entry,
                     struct skrull_error *err);

/* Binds the opened job (takes a reference) and makes its progress. To be called before the store is
 * asked, so that nothing can fail after it. RESOURCE_EXHAUSTED: out of memory. */
int registry_prepare(struct registry_entry *entry, struct job *job, struct skrull_error *err);

/* Makes a prepared entry visible. Cannot fail. */
void registry_publish(struct registry *registry, struct registry_entry *entry);

/* Gives up a reserved or prepared entry. */
void registry_cancel(struct registry *registry, struct registry_entry *entry);

/*
 * A new revision, in two steps as well: the progress of the revised job, which may fail; then, once
 * the store has the revision, the swap (takes a reference of `job`, and `progress` over), which may
 * not. Whoever holds the old job keeps it.
 */
int registry_make_progress(const struct job *job, struct progress **ret_progress,
                           struct skrull_error *err);
void registry_revise(struct registry_entry *entry, struct job *job, struct progress *progress);

/* What the store holds of a job: how it was created, and, where it could not be opened, its newest
 * spec and why. */
struct registry_saved {
    const struct skrull_job *created, *newest;
    const char *request_id;
    const struct skrull_error *why; /* NULL: it was opened */
    uint64_t given_out_below;
};

/* Adds a job that the store holds: `job` (takes a reference), or NULL: it is listed, but has no
 * plans. */
int registry_load(struct registry *registry, const struct registry_saved *saved, struct job *job,
                  struct registry_entry **ret_entry, struct skrull_error *err);

/* A published job, borrowed. NOT_FOUND names it. */
int registry_find(const struct registry *registry, const char *name,
                  struct registry_entry **ret_entry, struct skrull_error *err);

/* Takes a published job out of the table: no longer found, `is_deleted` for those who hold it. */
void registry_remove(struct registry *registry, struct registry_entry *entry);

struct registry_entry *registry_entry_ref(struct registry_entry *entry);
void registry_entry_unref(struct registry_entry *entry);

/* The opened job, borrowed. FAILED_PRECONDITION says why a broken one has no plans; NOT_FOUND:
 * deleted. */
int registry_entry_job(const struct registry_entry *entry, struct job **ret_job,
                       struct skrull_error *err);

/* FAILED_PRECONDITION unless `uid` is "" or the job's. */
int registry_entry_check_uid(const struct registry_entry *entry, const char *uid,
                             struct skrull_error *err);

/* Published jobs by name: the i-th, i < registry_count. */
size_t registry_count(const struct registry *registry);
struct registry_entry *registry_at(const struct registry *registry, size_t i);

/*
 * One page of ListJobs: [first, first + n) for registry_at. page_size 0 is 100, more than 1,000 is
 * 1,000. `next_page_token` is "" on the last page, else a name in the registry (borrowed).
 * INVALID_ARGUMENT: a page_token that no page gave out.
 */
struct registry_page {
    size_t first, n;
    const char *next_page_token;
};
int registry_page(const struct registry *registry, uint64_t page_size, const char *page_token,
                  struct registry_page *ret_page, struct skrull_error *err);

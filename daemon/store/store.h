/*
 * 5 STORE: what survives kill -9: jobs (spec with uid, revision, info), how far plans were given
 * out, and which steps were reported. To add a store: store_x.c and a line in stores.def. Called
 * from one thread at a time (the daemon's store queue); every call is durable when it returns.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

struct store;

struct store_job {
    const char *name;
    const char *uid;        /* 32 hex digits */
    const char *request_id; /* "" where there was none */
    const uint8_t *spec;    /* codec_job_pack; of revision 1 */
    size_t spec_len;
    uint64_t given_out_below; /* plans of smaller steps may have been sent */
};

/* A later revision of a job. */
struct store_revision {
    uint32_t revision; /* from 2 */
    uint64_t first_step;
    const uint8_t *spec; /* codec_job_pack */
    size_t spec_len;
};

/* Steps [begin, end). */
struct store_range {
    uint64_t begin, end;
};

/* What one rank has reported: ascending ranges that do not touch. */
struct store_progress {
    uint32_t data_rank;
    const struct store_range *ranges; /* [n_ranges] */
    size_t n_ranges;
};

/* Makes the folders of `url` that are missing (mode 700). For the default state alone: in one that
 * somebody named, a missing folder may be a slip, or a disk that is not mounted. */
int store_make_folder(const char *url, struct skrull_error *err);

/*
 * Opens `url` ("sqlite:PATH"), creating the file (mode 600) where it is missing. NOT_FOUND: its
 * folder is missing. FAILED_PRECONDITION: another daemon holds it, or its schema is newer;
 * DATA_LOSS: damaged. INVALID_ARGUMENT: unknown scheme.
 */
int store_open(const char *url, struct store **ret_store, struct skrull_error *err);
void store_close(struct store *store);

/* Adds a job. ALREADY_EXISTS: the name is taken. */
int store_put_job(struct store *store, const struct store_job *job, struct skrull_error *err);

/* Adds the next revision of the job `uid`. ABORTED: it is not the next one; FAILED_PRECONDITION:
 * plans of its first step may have been given out. NOT_FOUND. */
int store_put_revision(struct store *store, const char *uid, const struct store_revision *revision,
                       struct skrull_error *err);

/* Removes a job, its revisions and its progress. NOT_FOUND. */
int store_delete_job(struct store *store, const char *name, struct skrull_error *err);

/* Raises given_out_below of the job `uid`; never lowers it. */
int store_give_out(struct store *store, const char *uid, uint64_t below, struct skrull_error *err);

/* Saves progress of some ranks ([n]) of the job `uid`, in one transaction. */
int store_put_progress(struct store *store, const char *uid, const struct store_progress *progress,
                       size_t n, struct skrull_error *err);

/* Calls back for each job by name, for each revision of a job from the second on, or for each
 * rank's progress of a job; memory is the callee's only during the call. Walks may be nested. A
 * non-zero return of the callback ends the walk and is returned. */
typedef int (*store_job_fn)(void *arg, const struct store_job *job);
typedef int (*store_revision_fn)(void *arg, const struct store_revision *revision);
typedef int (*store_progress_fn)(void *arg, const struct store_progress *progress);
int store_each_job(struct store *store, store_job_fn fn, void *arg, struct skrull_error *err);
int store_each_revision(struct store *store, const char *uid, store_revision_fn fn, void *arg,
                        struct skrull_error *err);
int store_each_progress(struct store *store, const char *uid, store_progress_fn fn, void *arg,
                        struct skrull_error *err);

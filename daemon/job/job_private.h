/* What an opened job is made of; for the files of this folder. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include <skrull/job.h>
#include <skrull/planner.h>

#include "job/dataset.h"
#include "sample/sample.h"

struct arena;

/* One revision of a job: a spec with what follows from it alone. Shared by the chains it is in. */
struct job_revision {
    atomic_size_t n_refs;
    struct arena *arena;            /* owns spec */
    struct skrull_job *spec;        /* completed; info filled once it was opened as the newest */
    struct skrull_cost_model *cost; /* owned */
    uint64_t first_step;
};

/* The data sets, shared by all revisions. */
struct job_data {
    atomic_size_t n_refs;
    struct dataset *datasets; /* [n_datasets]; owned */
    uint32_t n_datasets;
    uint64_t limit; /* tokens of the longest sequence that fits, as creation decided */
};

struct job {
    atomic_size_t n_refs;
    struct job_revision **revisions; /* [n_revisions] ascending; an owned reference each */
    uint32_t n_revisions;
    struct job_data *data;   /* owned reference */
    struct sampler *sampler; /* owned; of all steps, by the newest revision's list of revisions */
};

/* NULL is fine. */
void job_revision_unref(struct job_revision *revision);
void job_data_unref(struct job_data *data);

/* The revision in force at a step. FAILED_PRECONDITION: of one before those that the job knows. */
int job_revision_of(const struct job *job, uint64_t step, const struct job_revision **ret_revision,
                    struct skrull_error *err);

/* FAILED_PRECONDITION: an index file is no longer what was opened. To be asked before rows are
 * read: a mapped file that was cut short must not be touched. */
int job_check_unchanged(const struct job *job, struct skrull_error *err);

/* The sequences of a step ([batch.n_rows], for free), as the planner takes them; the indexes were
 * unchanged before and after they were read. OUT_OF_RANGE names both numbers. */
int job_batch(const struct job *job, uint64_t step, struct skrull_sequence **ret_sequences,
              struct sample_batch *ret_batch, struct skrull_error *err);

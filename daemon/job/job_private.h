/* What an opened job is made of; for the files of this folder. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include <skrull/job.h>
#include <skrull/planner.h>

#include "job/dataset.h"
#include "sample/sample.h"

struct arena;

struct job {
    atomic_size_t n_refs;
    struct arena *arena;            /* owns spec */
    struct skrull_job *spec;        /* completed; info filled by job_open */
    struct dataset *datasets;       /* [spec->n_data]; owned */
    struct sampler *sampler;        /* owned */
    struct skrull_cost_model *cost; /* owned */
};

/* FAILED_PRECONDITION: an index file is no longer what was opened. To be asked before rows are
 * read: a mapped file that was cut short must not be touched. */
int job_check_unchanged(const struct job *job, struct skrull_error *err);

/* The sequences of a step ([batch.n_rows], for free), as the planner takes them; the indexes were
 * unchanged before and after they were read. OUT_OF_RANGE names both numbers. */
int job_batch(const struct job *job, uint64_t step, struct skrull_sequence **ret_sequences,
              struct sample_batch *ret_batch, struct skrull_error *err);

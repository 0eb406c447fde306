/* One data set of an opened job: its index, which file that is, and what over-length does to its
 * rows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <skrull/error.h>
#include <skrull/job.h>

#include "job/job.h"

struct length_index;

struct dataset {
    uint32_t place;           /* in the job's data */
    char *path;               /* owned; where the file was found */
    struct stat found;        /* the file when it was opened */
    struct length_index *idx; /* owned */
    uint64_t payload_hash;
    uint64_t limit; /* tokens of the longest sequence that fits */
    uint64_t *kept; /* owned; a bit a row; NULL: all are kept */
    uint64_t n_kept, n_dropped, n_truncated;
    uint64_t tokens;  /* of the kept rows, after truncation */
    uint32_t longest; /* of these */
};

/* Opens and verifies the index of `spec`; every row counts as kept until dataset_fit.
 * INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, DATA_LOSS name the key and the file. */
int dataset_open(const struct skrull_dataset *spec, uint32_t place, const struct job_roots *roots,
                 struct dataset *ret_dataset, struct skrull_error *err);

/* A zeroed one is fine. */
void dataset_close(struct dataset *dataset);

/* Decides what becomes of sequences of more than `limit` tokens, and fills the sums.
 * INVALID_ARGUMENT: there are some and over_length refuses them; `where` says in words what the
 * limit is that of. */
int dataset_fit(struct dataset *dataset, enum skrull_over_length over_length, uint64_t limit,
                const char *where, struct skrull_error *err);

/* FAILED_PRECONDITION: the file at the path is gone, or another one, or was written to.
 * Thread-safe. */
int dataset_check_unchanged(const struct dataset *dataset, struct skrull_error *err);

/* FAILED_PRECONDITION: the index is not the one that `info` describes. */
int dataset_check_info(const struct dataset *dataset, const struct skrull_index_info *info,
                       struct skrull_error *err);

/* Tokens of a row as plans have it; 0: there is no such row, or it is dropped. */
uint32_t dataset_length(const struct dataset *dataset, uint64_t row);

/* Loss tokens of a row that dataset_length knows. */
uint32_t dataset_loss_tokens(const struct dataset *dataset, uint64_t row);

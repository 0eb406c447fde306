/* A temporary folder with indexes, and a completed job that reads them. */
#pragma once

#include <stdint.h>

#include <skrull/job.h>

#include "job/job.h"

/* <DP 2, CP 4>, bucket 1,000: sequences of up to 4,000 tokens fit; batches of 8. */
#define FOLDER_LIMIT 4000

struct job_folder {
    char path[64];
    const char *root;
    struct job_roots roots; /* root */
    struct skrull_dataset data[3];
    struct skrull_job spec; /* one data set, a.txt; job_folder_complete after changes */
};

/* CMocka's setup and teardown: *state is the folder. */
int job_folder_setup(void **state);
int job_folder_teardown(void **state);

/* Writes a text index `name`: each pair is {how many, of which length}, until a count of 0. */
void job_folder_write(const struct job_folder *folder, const char *name,
                      const uint32_t (*pairs)[2]);

/* The spec with its defaults; fails the test where it is refused. */
const struct skrull_job *job_folder_spec(struct job_folder *folder);

/* Opens the job; fails the test where that fails. */
struct job *job_folder_open(struct job_folder *folder);

/* Expects that opening is refused, with a code and words. */
void job_folder_expect_refused(struct job_folder *folder, int code, const char *says);

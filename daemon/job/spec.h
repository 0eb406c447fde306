/* Whole jobs as values: copies and comparison, by the table of a job's fields. */
#pragma once

#include <stdbool.h>

#include <skrull/job.h>

struct arena;
struct job_field;

/* A deep copy, output-only fields included; all of it in `arena`. NULL: out of memory. */
struct skrull_job *spec_copy(struct arena *arena, const struct skrull_job *spec);

/* Do both ask for the same? The output-only fields (uid, revision, info) are not compared; two
 * completed jobs, or two as they came. */
bool spec_is_same(const struct skrull_job *a, const struct skrull_job *b);

/* One field of job_fields.h's table, or all data sets. */
bool spec_is_same_field(const struct skrull_job *a, const struct skrull_job *b,
                        const struct job_field *field);
bool spec_is_same_data(const struct skrull_job *a, const struct skrull_job *b);

/* Leaves out what a client may send but does not decide: uid, revision, info. */
void spec_clear_output(struct skrull_job *spec);

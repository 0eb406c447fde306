/* The spec of a job's next revision: which fields an update names, and which of them may change. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>
#include <skrull/job.h>

struct arena;

/*
 * What an update asks for. Paths of the mask are those of the job file in snake_case or
 * lowerCamelCase, of a field ("batch.bucket_tokens"), of a group ("batch"), or "*" for all; the
 * output-only ones count for nothing. No mask: all fields that are set in `job`. Of epochs and
 * steps, giving one takes the other away.
 */
struct revise_request {
    const struct skrull_job *job; /* as it came: not completed */
    const char *const *mask;      /* [n_mask] */
    size_t n_mask;
    uint32_t expected_revision; /* 0: any */
    uint64_t from_step;         /* 0: `floor` */
    uint64_t floor;             /* no revision may begin below */
};

/*
 * The next revision of `current` (completed, with info), in `arena`; texts are borrowed from both.
 * It begins at the larger of request->from_step and what 0 stands for; info.steps is 0, for
 * job_revise to find. Returns 0; REVISE_UNCHANGED: the update changes nothing, *ret_spec is not
 * set. ABORTED: another revision is expected. FAILED_PRECONDITION: from_step is below floor, which
 * is named. OUT_OF_RANGE: it is past the job's steps. INVALID_ARGUMENT: a path that no field has; a
 * field on which the order of samples hangs (name, data, seed, order, last_batch); values that
 * job_complete refuses. RESOURCE_EXHAUSTED: too many revisions, or out of memory.
 */
#define REVISE_UNCHANGED 1
int revise_spec(struct arena *arena, const struct skrull_job *current,
                const struct revise_request *request, struct skrull_job **ret_spec,
                struct skrull_error *err);

/* Job <-> skrull.v1.Job. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/job.h>

struct arena;
typedef struct Skrull__V1__Job Skrull__V1__Job;

/* Message to job: strings are copied into `arena`. Ranges of the wire are checked (a u64 that no
 * field takes), the rest by job_complete, which is not called here. */
int codec_job_decode(struct arena *arena, const Skrull__V1__Job *message,
                     struct skrull_job **ret_job, struct skrull_error *err);

/* Job to message, all in `arena`, strings borrowed from the job. */
int codec_job_encode(struct arena *arena, const struct skrull_job *job,
                     Skrull__V1__Job **ret_message, struct skrull_error *err);

/* The same to and from wire bytes (the store's blob, a request's body). */
int codec_job_pack(struct arena *arena, const struct skrull_job *job, uint8_t **ret_bytes,
                   size_t *ret_len, struct skrull_error *err);
int codec_job_unpack(struct arena *arena, const uint8_t *bytes, size_t len,
                     struct skrull_job **ret_job, struct skrull_error *err);

/* Jobs that a caller owns: skrull_job_free frees them with all they point to. */
#pragma once

#include <skrull/error.h>
#include <skrull/job.h>

#include "codec_rpc.h"

/* Decodes a reply that is a Job. */
int owned_job_decode(struct rpc_bytes reply, struct skrull_job **ret_job, struct skrull_error *err);

/* Backend cpu: trains a decoder by a job's plans. */
#pragma once

#include "worker.h"

/* Trains as the options say; what went wrong was said. */
enum worker_exit train_job(struct skrull_client *client, const struct worker_options *options);

/* Is there a GPU for this process? UNAVAILABLE or UNIMPLEMENTED says why not. */
int train_find_device(struct skrull_error *err);

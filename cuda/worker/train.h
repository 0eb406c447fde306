/* Backend cpu: trains a decoder by a job's plans. */
#pragma once

#include "worker.h"

/* Trains as the options say; what went wrong was said. */
enum worker_exit train_job(struct skrull_client *client, const struct worker_options *options);

/* One data rank that trains. */
#pragma once

#include <skrull/exec.h>

#include "training.h"
#include "worker.h"

struct train_rank {
    const struct worker_options *options;
    struct skrull_client *client; /* shared */
    const struct skrull_job *job; /* borrowed */
    struct training_options training;
    struct skrull_comm *comm; /* borrowed; NULL: it is the only rank */
    bool is_mpi;              /* of several processes: started by MPI */
    uint32_t data_rank;
    enum worker_exit status; /* of train_rank_run */
};

/* Runs a rank until its stream ends or it fails; sets `status`. In any thread. */
void train_rank_run(struct train_rank *rank);

/* The same batches without a scheduler: whole plans are fetched for what they hold. */
void train_rank_run_unscheduled(struct train_rank *rank);

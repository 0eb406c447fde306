/* In place of comm_mpi.c where MPI was not found. */
#include "comm.h"

int skrull_comm_mpi(int64_t timeout_ms, struct skrull_comm **ret_comm, struct skrull_error *err)
{
    (void)timeout_ms;
    (void)ret_comm;
    return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED,
                            "built without MPI; install libopenmpi-dev and build again");
}

/* In place of comm_nccl.c where CUDA or NCCL was not found. */
#include "comm.h"

int skrull_comm_nccl(struct skrull_comm *host, int device, uint32_t cp,
                     struct skrull_comm **ret_comm, struct skrull_error *err)
{
    (void)host;
    (void)device;
    (void)cp;
    (void)ret_comm;
    return skrull_error_set(err, SKRULL_ERR_UNIMPLEMENTED,
                            "built without NCCL; install it beside CUDA and build again");
}

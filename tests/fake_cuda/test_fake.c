/* The fake itself: each kind of mistake that it is to catch is made once. And what the real code
 * makes of a GPU that is not there, of ranks that do not come and of exchanges that fail. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <nccl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "comm.h"
#include "device.h"
#include "fake.h"
#include "ops.h"

#define N 64u

static void expect_report(const char *text)
{
    const char *reports = fake_end();

    if (!strstr(reports, text)) {
        fail_msg("instead of \"%s\": %s", text, reports);
    }
}

static cudaStream_t new_stream(void)
{
    cudaStream_t stream = NULL;

    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
}

static void *new_memory(size_t bytes)
{
    void *memory = NULL;

    assert_int_equal(cudaMalloc(&memory, bytes), cudaSuccess);
    return memory;
}

static float *new_host(void)
{
    void *memory = NULL;

    assert_int_equal(cudaMallocHost(&memory, N * sizeof(float)), cudaSuccess);
    return memory;
}

static void test_fake__memory_is_poisoned_and_copies_are_late(void **state)
{
    float *host;
    void *device;
    cudaStream_t stream;

    (void)state;
    fake_begin(1, 1, 1);
    stream = new_stream();
    device = new_memory(N * sizeof(float));
    host = new_host();
    host[0] = 5.0F;
    assert_int_equal(cudaMemcpyAsync(host, device, N * sizeof(float), cudaMemcpyDefault, stream),
                     cudaSuccess);
    assert_true(host[0] >= 5.0F); /* nobody has waited */
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    assert_true(isnan(host[0]));
    assert_int_equal(cudaFree(device), cudaSuccess);
    assert_int_equal(cudaFreeHost(host), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
    assert_string_equal(fake_end(), "");
}

static void test_fake__host_is_kept_off(void **state)
{
    volatile float *device;
    int status = 0;
    pid_t child;

    (void)state;
    fake_begin(1, 1, 1);
    device = new_memory(N * sizeof(float));
    child = fork();
    if (child == 0) {
        (void)signal(SIGSEGV, SIG_DFL);
        (void)signal(SIGBUS, SIG_DFL);
        device[0] = 1.0F;
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    expect_report("left over: 1 allocations");
}

static void test_fake__foreign_memory(void **state)
{
    static float array[N];
    struct skrull_add add = {.dtype = SKRULL_DTYPE_F32, .n = 1, .a = array, .b = array};
    cudaStream_t stream;
    char *device;

    (void)state;
    fake_begin(1, 1, 1);
    stream = new_stream();
    device = new_memory(N);
    assert_int_equal(cudaMemcpyAsync(device, array, 4, cudaMemcpyDefault, stream),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaMemsetAsync(device + 1, 0, N, stream), cudaErrorInvalidValue);
    add.out = device;
    assert_int_equal(fake_ops()->add(&add, stream, NULL), 0);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    assert_non_null(strstr(fake_reports(), "cudaMemcpyAsync"));
    assert_non_null(strstr(fake_reports(), "cudaMemsetAsync"));
    expect_report("add: ");
}

static void test_device_cuda__no_driver_or_too_few(void **state)
{
    struct skrull_error err = {0};
    struct device *device = NULL;

    (void)state;
    fake_begin(1, 1, 0);
    assert_int_equal(device_open("cuda", 0, &device, &err), SKRULL_ERR_UNAVAILABLE);
    assert_non_null(strstr(err.message, "no GPU here: CUDA driver version is insufficient"));
    (void)fake_end();
    fake_begin(1, 1, 2);
    assert_int_equal(device_open("cuda", 2, &device, &err), SKRULL_ERR_UNAVAILABLE);
    assert_non_null(strstr(err.message, "no GPU 2 here: there are 2"));
    assert_string_equal(fake_end(), "");
}

#define N_RANKS 3u

/* Ranks that exchange by NCCL, each as its function says. */
struct rank {
    struct skrull_comm *comm;
    cudaStream_t stream;
    char *memory;
    uint32_t number;
    int rc;
    struct skrull_error err;
    void (*run)(struct rank *rank);
};

static void *run_rank(void *arg)
{
    struct rank *rank = arg;

    rank->rc = skrull_comm_nccl(rank->comm, (int)rank->number, 0, &rank->comm, &rank->err);
    if (rank->rc == 0) {
        rank->stream = new_stream();
        rank->memory = new_memory(N_RANKS * N);
        rank->run(rank);
    }
    if (rank->rc < 0) {
        skrull_comm_fail(rank->comm, &rank->err);
    }
    if (rank->memory) {
        (void)cudaFree(rank->memory);
        (void)cudaStreamDestroy(rank->stream);
    }
    skrull_comm_free(rank->comm);
    fake_thread_end();
    return NULL;
}

static void run_ranks(struct rank *ranks, uint32_t n_devices, int64_t timeout_ms,
                      void (*run)(struct rank *rank))
{
    struct skrull_comm *comms[N_RANKS];
    pthread_t threads[N_RANKS];

    memset(ranks, 0, N_RANKS * sizeof(*ranks));
    fake_begin(3, N_RANKS, n_devices);
    assert_int_equal(skrull_comm_threads(N_RANKS, timeout_ms, comms, NULL), 0);
    for (uint32_t r = 0; r < N_RANKS; r++) {
        ranks[r] = (struct rank){.comm = comms[r], .number = r, .run = run};
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &ranks[r]), 0);
    }
    for (uint32_t r = 0; r < N_RANKS; r++) {
        assert_int_equal(pthread_join(threads[r], NULL), 0);
    }
}

static int wait_for_stream(struct rank *rank)
{
    int64_t deadline_ns = comm_now_ns() + rank->comm->timeout_ms * 1000000;
    int rc = 0;
    cudaEvent_t event;

    (void)cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    (void)cudaEventRecord(event, rank->stream);
    while (rc == 0 && cudaEventQuery(event) == cudaErrorNotReady) {
        rc = rank->comm->streams->check(rank->comm, &rank->err);
        if (rc == 0 && comm_now_ns() > deadline_ns) {
            rc = skrull_error_set(&rank->err, SKRULL_ERR_DEADLINE_EXCEEDED, "too late");
        }
    }
    (void)cudaEventDestroy(event);
    return rc;
}

static int gather(struct rank *rank, size_t bytes)
{
    const struct comm_stream_ops *streams = rank->comm->streams;
    const struct comm_group all = {.size = N_RANKS, .member = rank->number};
    int rc = streams->begin(rank->comm, &rank->err);

    if (rc == 0) {
        rc = streams->gather(rank->comm, &all, rank->memory, bytes, rank->stream, &rank->err);
    }
    return rc < 0 ? rc : streams->end(rank->comm, &rank->err);
}

static void gather_soundly(struct rank *rank)
{
    rank->rc = gather(rank, N);
    if (rank->rc == 0) {
        rank->rc = wait_for_stream(rank);
    }
}

static void test_comm_nccl__gathers(void **state)
{
    struct rank ranks[N_RANKS];

    (void)state;
    run_ranks(ranks, N_RANKS, 10000, gather_soundly);
    for (uint32_t r = 0; r < N_RANKS; r++) {
        assert_int_equal(ranks[r].rc, 0);
    }
    assert_string_equal(fake_end(), "");
}

/* Whoever has not heard everybody yet when the first gives up hears it from that one: ABORTED. */
static void test_comm_nccl__a_rank_without_gpu(void **state)
{
    struct rank ranks[N_RANKS];

    (void)state;
    run_ranks(ranks, N_RANKS - 1, 10000, gather_soundly);
    for (uint32_t r = 0; r < N_RANKS; r++) {
        assert_true(ranks[r].rc == SKRULL_ERR_UNAVAILABLE || ranks[r].rc == SKRULL_ERR_ABORTED);
        assert_non_null(strstr(ranks[r].err.message, "data rank 2: no GPU 2 here"));
    }
    assert_string_equal(fake_end(), "");
}

static void gather_differently(struct rank *rank)
{
    rank->rc = gather(rank, rank->number == 1 ? N - 1 : N);
    if (rank->rc == 0) {
        rank->rc = wait_for_stream(rank);
    }
}

static void test_fake__counts_that_differ(void **state)
{
    struct rank ranks[N_RANKS];

    (void)state;
    run_ranks(ranks, N_RANKS, 10000, gather_differently);
    expect_report("rank 0 calls ncclAllGather of 64 bytes, rank 1 ncclAllGather of 63");
}

/* Member 2 does not come: the others are told why, or end by their time-out, and abort. */
static void gather_without_last(struct rank *rank)
{
    if (rank->number != 2) {
        rank->rc = gather(rank, N);
        if (rank->rc == 0) {
            rank->rc = wait_for_stream(rank);
        }
    }
}

static void test_comm_nccl__member_never_comes(void **state)
{
    struct rank ranks[N_RANKS];
    uint32_t n_late = 0;

    (void)state;
    run_ranks(ranks, N_RANKS, 200, gather_without_last);
    assert_int_equal(ranks[2].rc, 0);
    for (uint32_t r = 0; r < 2; r++) {
        n_late += ranks[r].rc == SKRULL_ERR_DEADLINE_EXCEEDED;
        assert_true(ranks[r].rc == SKRULL_ERR_DEADLINE_EXCEEDED ||
                    ranks[r].rc == SKRULL_ERR_ABORTED);
    }
    assert_true(n_late >= 1);
    expect_report("waits in ncclAllGather of rank 0 for rank 2 of 3");
}

static void pass_around(struct rank *rank)
{
    const struct comm_stream_ops *streams = rank->comm->streams;
    uint32_t next = (rank->number + 1) % N_RANKS;
    int rc = streams->begin(rank->comm, &rank->err);

    /* Sends without a receive: nobody can go on. */
    if (rc == 0) {
        rc = streams->send(rank->comm, next, rank->memory, N, rank->stream, &rank->err);
    }
    if (rc == 0) {
        rc = streams->end(rank->comm, &rank->err);
    }
    rank->rc = rc < 0 ? rc : wait_for_stream(rank);
}

static void test_fake__sends_without_receives(void **state)
{
    struct rank ranks[N_RANKS];

    (void)state;
    run_ranks(ranks, N_RANKS, 200, pass_around);
    expect_report("waits in ncclSend of rank 0 for rank 1");
}

static void break_one(struct rank *rank)
{
    if (rank->number == 1) {
        fake_nccl_break(1, ncclRemoteError);
        rank->rc = rank->comm->streams->check(rank->comm, &rank->err);
    } else {
        gather_soundly(rank);
    }
}

static void test_comm_nccl__asynchronous_error(void **state)
{
    struct rank ranks[N_RANKS];

    (void)state;
    run_ranks(ranks, N_RANKS, 10000, break_one);
    assert_int_equal(ranks[1].rc, SKRULL_ERR_UNAVAILABLE);
    for (uint32_t r = 0; r < N_RANKS; r += 2) {
        assert_int_equal(ranks[r].rc, SKRULL_ERR_ABORTED);
        assert_non_null(strstr(ranks[r].err.message, "an exchange by NCCL"));
    }
    (void)fake_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fake__memory_is_poisoned_and_copies_are_late),
        cmocka_unit_test(test_fake__host_is_kept_off),
        cmocka_unit_test(test_fake__foreign_memory),
        cmocka_unit_test(test_device_cuda__no_driver_or_too_few),
        cmocka_unit_test(test_comm_nccl__gathers),
        cmocka_unit_test(test_comm_nccl__a_rank_without_gpu),
        cmocka_unit_test(test_fake__counts_that_differ),
        cmocka_unit_test(test_comm_nccl__member_never_comes),
        cmocka_unit_test(test_fake__sends_without_receives),
        cmocka_unit_test(test_comm_nccl__asynchronous_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

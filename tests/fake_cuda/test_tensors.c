/*
 * Attention on tensors of somebody else, as DLPack hands them over, on the caller's stream: on the
 * CPU and on fake GPUs. Scores are equal, so attention is the mean of what a token sees; values are
 * positions, so it is half its position; and each query shares out a gradient of 1 among values.
 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <skrull/planner.h>
#include <skrull/tensors.h>

#include "fake.h"

#define N_RANKS 2u
#define HEADS 2u
#define DIM 4u
#define WIDTH ((size_t)HEADS * DIM)
#define N_TENSORS 9

static const struct skrull_attention_shape shape = {
    .heads = HEADS, .kv_heads = HEADS, .head_dim = DIM, .scale = 1.0F, .causal = true};

/* A rank's tensors, in the order of struct skrull_dl_tensors; `host` has their numbers. */
struct rank {
    struct skrull_comm *comm;
    const struct skrull_plan *plan;
    uint32_t data_rank;
    bool is_fake;
    enum skrull_exchange exchange;
    cudaStream_t stream;
    struct skrull_layout *layout;
    float *host[N_TENSORS];
    void *device[N_TENSORS];
    struct skrull_dl_managed managed[N_TENSORS];
    int64_t shapes[N_TENSORS][3];
    double worst, given; /* difference of outputs; sum of dv */
    uint64_t n_tokens;
    int rc;
    struct skrull_error err;
};

static size_t width_of(int i)
{
    return i == 4 ? HEADS : WIDTH;
}

/* Memory as a framework would have it. */
static void allocate(struct rank *rank, int i)
{
    size_t rows = rank->layout->rows.n_rows, bytes = rows * width_of(i) * sizeof(float);
    void *host = NULL;
    bool is_there = !rank->is_fake || cudaMallocHost(&host, bytes) == cudaSuccess;

    rank->host[i] = rank->is_fake ? host : malloc(bytes);
    rank->device[i] = rank->host[i];
    is_there = is_there && rank->host[i] &&
               (!rank->is_fake || cudaMalloc(&rank->device[i], bytes) == cudaSuccess);
    if (!is_there) {
        abort();
    }
    for (size_t n = 0; n < rows * width_of(i); n++) {
        int32_t position = rank->layout->rows.position[n / width_of(i)];
        bool is_token = position != SKRULL_NO_POSITION;

        rank->host[i][n] = i == 0 || i == 1 ? 0.0F
                           : i == 2         ? (float)(is_token ? position : 0)
                           : i == 5         ? (float)is_token
                                            : NAN;
    }
    if (rank->is_fake && cudaMemcpyAsync(rank->device[i], rank->host[i], bytes, cudaMemcpyDefault,
                                         rank->stream) != cudaSuccess) {
        abort();
    }
}

static void describe(struct rank *rank, int i)
{
    struct skrull_dl_managed *managed = &rank->managed[i];

    rank->shapes[i][0] = rank->layout->rows.n_rows;
    rank->shapes[i][1] = HEADS;
    rank->shapes[i][2] = DIM;
    *managed = (struct skrull_dl_managed){
        .major = 1,
        .minor = 1,
        .tensor = {.data = rank->device[i],
                   .device_type = rank->is_fake ? SKRULL_DL_CUDA : SKRULL_DL_CPU,
                   .device_id = rank->is_fake ? (int32_t)rank->data_rank : 0,
                   .n_dims = i == 4 ? 2 : 3,
                   .code = SKRULL_DL_FLOAT,
                   .bits = 32,
                   .lanes = 1,
                   .shape = rank->shapes[i]}};
}

static int bind(struct rank *rank, struct skrull_exec *exec, struct skrull_tensors *ret)
{
    const struct skrull_dl_tensor *opened[N_TENSORS] = {NULL};
    struct skrull_dl_tensors tensors;

    for (int i = 0; i < N_TENSORS; i++) {
        int rc;

        allocate(rank, i);
        describe(rank, i);
        rc = skrull_dl_open(&rank->managed[i], i == 3 || i == 4 || i > 5, &opened[i], &rank->err);
        if (rc < 0) {
            return rc;
        }
    }
    memcpy(&tensors, opened, sizeof(tensors));
    return skrull_exec_bind_dl(exec, &tensors, ret, &rank->err);
}

/* What a framework does for one layer. */
static int run_layer(struct rank *rank, struct skrull_exec *exec)
{
    struct skrull_tensors tensors;
    int rc = bind(rank, exec, &tensors);

    if (rc == 0) {
        rc = skrull_exec_attend(exec, &tensors, &rank->err);
    }
    if (rc == 0) {
        rc = skrull_exec_attend_backward(exec, &tensors, &rank->err);
    }
    return rc < 0 ? rc : skrull_exec_end(exec, &rank->err);
}

/* Its results; the framework waits for its own stream. */
static void judge(struct rank *rank)
{
    const struct skrull_row_set *rows = &rank->layout->rows;

    for (int i = 0; i < N_TENSORS && rank->is_fake; i++) {
        (void)cudaMemcpyAsync(rank->host[i], rank->device[i],
                              rows->n_rows * width_of(i) * sizeof(float), cudaMemcpyDefault,
                              rank->stream);
    }
    if (rank->is_fake && cudaStreamSynchronize(rank->stream) != cudaSuccess) {
        abort();
    }
    for (size_t n = 0; n < rows->n_rows * WIDTH; n++) {
        int32_t position = rows->position[n / WIDTH];

        rank->given += (double)rank->host[8][n];
        if (position != SKRULL_NO_POSITION) {
            rank->worst = fmax(rank->worst, fabs((double)rank->host[3][n] - position / 2.0));
        }
    }
    rank->n_tokens = rows->n_tokens;
    for (int i = 0; i < N_TENSORS; i++) {
        if (rank->is_fake) {
            (void)cudaFree(rank->device[i]);
            (void)cudaFreeHost(rank->host[i]);
        } else {
            free(rank->host[i]);
        }
    }
}

static int run_micro_batch(struct rank *rank, struct skrull_exec *exec)
{
    struct skrull_layout_limits limits;
    int rc = skrull_layout_measure(rank->plan, rank->data_rank, &limits, &rank->err);

    if (rc == 0) {
        rc = skrull_layout_new(rank->plan, rank->data_rank, 0, &rank->layout, &rank->err);
    }
    if (rc == 0) {
        rc = skrull_exec_begin(exec, rank->layout, &limits, &shape, &rank->err);
    }
    if (rc == 0) {
        rc = run_layer(rank, exec);
    }
    if (rc == 0) {
        judge(rank);
    }
    skrull_layout_free(rank->layout);
    return rc;
}

static void *run_rank(void *arg)
{
    struct rank *rank = arg;
    struct skrull_exec_options options = {
        .exchange = rank->exchange, .device = (int)rank->data_rank, .dtype = SKRULL_DTYPE_F32};
    struct skrull_exec *exec = NULL;

    if (rank->is_fake) {
        rank->rc = skrull_comm_nccl(rank->comm, options.device, 0, &rank->comm, &rank->err);
        options.backend = "cuda";
        options.has_stream = true;
        (void)cudaStreamCreateWithFlags(&rank->stream, cudaStreamNonBlocking);
        options.stream = rank->stream;
    }
    options.comm = rank->comm;
    if (rank->rc == 0) {
        rank->rc = skrull_exec_new(&options, &exec, &rank->err);
    }
    if (rank->rc == 0) {
        rank->rc = run_micro_batch(rank, exec);
    }
    if (rank->rc < 0) {
        skrull_comm_fail(rank->comm, &rank->err);
    }
    skrull_exec_free(exec);
    skrull_comm_free(rank->comm);
    if (rank->is_fake) {
        (void)cudaStreamDestroy(rank->stream);
        fake_thread_end();
    }
    return NULL;
}

/* One long sequence over both ranks, and short ones. */
static struct skrull_plan *make_plan(void)
{
    static const struct skrull_sequence sequences[] = {
        {.sample = 0, .length = 300, .loss_tokens = 300},
        {.sample = 1, .index = 1, .length = 20, .loss_tokens = 20},
        {.sample = 2, .index = 2, .length = 1, .loss_tokens = 1}};
    const struct skrull_cost_options options = {.preset = "qwen2.5-0.5b"};
    struct skrull_planner_input input = {
        .options = {.dp = 1, .cp = N_RANKS, .bucket_tokens = 200, .align = 4, .policy = "skrull"},
        .sequences = sequences,
        .n_sequences = 3};
    struct skrull_cost_model *cost = NULL;
    struct skrull_plan *plan = NULL;

    assert_int_equal(skrull_cost_model_new(&options, &cost, NULL), 0);
    input.cost = cost;
    assert_int_equal(skrull_planner_run(&input, &plan, NULL), 0);
    skrull_cost_model_free(cost);
    return plan;
}

static void run_ranks(bool is_fake, enum skrull_exchange exchange, uint64_t seed)
{
    struct skrull_plan *plan = make_plan();
    struct skrull_comm *comms[N_RANKS];
    struct rank *ranks = calloc(N_RANKS, sizeof(*ranks));
    pthread_t threads[N_RANKS];
    double given = 0;
    uint64_t n_tokens = 0;

    assert_non_null(ranks);
    if (is_fake) {
        fake_begin(seed, N_RANKS, N_RANKS);
    }
    assert_int_equal(skrull_comm_threads(N_RANKS, 20000, comms, NULL), 0);
    for (uint32_t r = 0; r < N_RANKS; r++) {
        ranks[r] = (struct rank){.comm = comms[r],
                                 .plan = plan,
                                 .data_rank = r,
                                 .is_fake = is_fake,
                                 .exchange = exchange};
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &ranks[r]), 0);
    }
    for (uint32_t r = 0; r < N_RANKS; r++) {
        assert_int_equal(pthread_join(threads[r], NULL), 0);
    }
    for (uint32_t r = 0; r < N_RANKS; r++) {
        if (ranks[r].rc < 0) {
            fail_msg("rank %u: %s", r, ranks[r].err.message);
        }
        assert_true(ranks[r].worst < 1e-3);
        given += ranks[r].given;
        n_tokens += ranks[r].n_tokens;
    }
    assert_true(fabs(given / (double)(n_tokens * WIDTH) - 1.0) < 1e-5);
    if (is_fake) {
        assert_string_equal(fake_end(), "");
    }
    skrull_plan_free(plan);
    free(ranks);
}

static void test_exec_attend__on_the_cpu(void **state)
{
    (void)state;
    run_ranks(false, SKRULL_EXCHANGE_GATHER, 0);
    run_ranks(false, SKRULL_EXCHANGE_RING, 0);
}

static void test_exec_attend__on_the_callers_stream(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 32; seed++) {
        run_ranks(true, seed & 2 ? SKRULL_EXCHANGE_RING : SKRULL_EXCHANGE_GATHER, seed);
    }
}

/* One layout of one rank, and tensors that are as they must be. */
struct bound {
    struct skrull_plan *plan;
    struct skrull_layout *layout;
    struct skrull_exec *exec;
    struct skrull_dl_tensor whole, flat, lse;
    int64_t shape3[3], shape2[2], lse_shape[2], strides[3];
    struct skrull_dl_tensors tensors;
};

static void bind_all(struct bound *b)
{
    const struct skrull_sequence sequence = {.length = 9, .loss_tokens = 9};
    const struct skrull_cost_options cost_options = {.preset = "qwen2.5-0.5b"};
    struct skrull_planner_input input = {
        .options = {.dp = 1, .cp = 1, .bucket_tokens = 64, .policy = "skrull"},
        .sequences = &sequence,
        .n_sequences = 1};
    struct skrull_layout_limits limits;
    struct skrull_cost_model *cost = NULL;

    memset(b, 0, sizeof(*b));
    assert_int_equal(skrull_cost_model_new(&cost_options, &cost, NULL), 0);
    input.cost = cost;
    assert_int_equal(skrull_planner_run(&input, &b->plan, NULL), 0);
    skrull_cost_model_free(cost);
    assert_int_equal(skrull_layout_measure(b->plan, 0, &limits, NULL), 0);
    assert_int_equal(skrull_layout_new(b->plan, 0, 0, &b->layout, NULL), 0);
    assert_int_equal(skrull_exec_new(&(struct skrull_exec_options){0}, &b->exec, NULL), 0);
    assert_int_equal(skrull_exec_begin(b->exec, b->layout, &limits, &shape, NULL), 0);
    memcpy(b->shape3, (int64_t[]){9, HEADS, DIM}, sizeof(b->shape3));
    memcpy(b->shape2, (int64_t[]){9, WIDTH}, sizeof(b->shape2));
    memcpy(b->lse_shape, (int64_t[]){9, HEADS}, sizeof(b->lse_shape));
    memcpy(b->strides, (int64_t[]){WIDTH, DIM, 1}, sizeof(b->strides));
    b->whole = (struct skrull_dl_tensor){.data = b,
                                         .device_type = SKRULL_DL_CPU,
                                         .n_dims = 3,
                                         .code = SKRULL_DL_FLOAT,
                                         .bits = 32,
                                         .lanes = 1,
                                         .shape = b->shape3,
                                         .strides = b->strides,
                                         .byte_offset = 16};
    b->flat = b->lse = b->whole;
    b->flat.n_dims = b->lse.n_dims = 2;
    b->flat.strides = b->lse.strides = NULL;
    b->flat.shape = b->shape2;
    b->lse.shape = b->lse_shape;
    b->tensors = (struct skrull_dl_tensors){
        .q = &b->whole, .k = &b->flat, .v = &b->whole, .out = &b->whole, .lse = &b->lse};
}

static void free_bound(struct bound *b)
{
    skrull_exec_free(b->exec);
    skrull_layout_free(b->layout);
    skrull_plan_free(b->plan);
}

static void expect_fault(const struct bound *b, const char *text)
{
    struct skrull_tensors tensors;
    struct skrull_error err = {0};

    assert_int_equal(skrull_exec_bind_dl(b->exec, &b->tensors, &tensors, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    if (!strstr(err.message, text)) {
        fail_msg("instead of \"%s\": %s", text, err.message);
    }
}

static void test_exec_bind_dl__names_what_does_not_fit(void **state)
{
    struct skrull_dl_tensor other;
    struct skrull_tensors tensors;
    int64_t wrong[3] = {9, HEADS, DIM + 1};
    struct bound b;

    (void)state;
    bind_all(&b);
    assert_int_equal(skrull_exec_bind_dl(b.exec, &b.tensors, &tensors, NULL), 0);
    assert_ptr_equal(tensors.q, (const char *)&b + 16);
    assert_null(tensors.dq);

    b.tensors.out = NULL;
    expect_fault(&b, "tensor out: it is missing");
    b.tensors.out = &b.whole;
    other = b.whole;
    b.tensors.v = &other;
    other.device_type = SKRULL_DL_CUDA;
    expect_fault(&b, "tensor v: it lies on another device");
    other = b.whole;
    other.bits = 16;
    expect_fault(&b, "tensor v: it is of another dtype");
    other = b.whole;
    other.code = SKRULL_DL_INT;
    expect_fault(&b, "tensor v: it is of another dtype");
    other = b.whole;
    other.shape = wrong;
    expect_fault(&b, "tensor v: its shape");
    other = b.whole;
    other.n_dims = 1;
    expect_fault(&b, "tensor v: its shape");
    other = b.whole;
    wrong[2] = 1;
    wrong[1] = DIM;
    wrong[0] = (int64_t)WIDTH;
    other.strides = wrong;
    assert_int_equal(skrull_exec_bind_dl(b.exec, &b.tensors, &tensors, NULL), 0);
    wrong[0] = 2 * (int64_t)WIDTH;
    expect_fault(&b, "tensor v: it is not dense");
    free_bound(&b);
}

static void test_dl_open__versions(void **state)
{
    struct skrull_dl_managed managed = {.major = 1, .minor = 7, .flags = SKRULL_DL_READ_ONLY};
    const struct skrull_dl_tensor *tensor = NULL;

    (void)state;
    assert_int_equal(skrull_dl_open(&managed, false, &tensor, NULL), 0);
    assert_ptr_equal(tensor, &managed.tensor);
    assert_int_equal(skrull_dl_open(&managed, true, &tensor, NULL), SKRULL_ERR_INVALID_ARGUMENT);
    managed.major = 2;
    assert_int_equal(skrull_dl_open(&managed, false, &tensor, NULL), SKRULL_ERR_INVALID_ARGUMENT);
    /* The public layout, which other programs rely on. */
    assert_int_equal(sizeof(struct skrull_dl_tensor), 48);
    assert_int_equal(offsetof(struct skrull_dl_tensor, byte_offset), 40);
    assert_int_equal(offsetof(struct skrull_dl_managed, flags), 24);
    assert_int_equal(offsetof(struct skrull_dl_managed, tensor), 32);
}

static void test_exec_map_dl__positions(void **state)
{
    struct skrull_dl_managed *map = NULL;
    struct bound b;

    (void)state;
    bind_all(&b);
    assert_int_equal(skrull_exec_map_dl(b.exec, SKRULL_MAP_POSITION, &map, NULL), 0);
    assert_int_equal(map->tensor.shape[0], 9);
    assert_int_equal(map->tensor.code, SKRULL_DL_INT);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(((const int32_t *)map->tensor.data)[i], i);
    }
    map->deleter(map);
    assert_int_equal(skrull_exec_map_dl(b.exec, SKRULL_MAP_LOSS_WEIGHT, &map, NULL), 0);
    assert_int_equal(map->tensor.code, SKRULL_DL_FLOAT);
    assert_ptr_equal(map->tensor.data, b.layout->loss_weight);
    map->deleter(map);
    free_bound(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exec_attend__on_the_cpu),
        cmocka_unit_test(test_exec_attend__on_the_callers_stream),
        cmocka_unit_test(test_exec_bind_dl__names_what_does_not_fit),
        cmocka_unit_test(test_dl_open__versions),
        cmocka_unit_test(test_exec_map_dl__positions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

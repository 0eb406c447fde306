/*
 * Training on GPUs that are fakes, a thread a rank: the real execution, exchange by NCCL and device
 * table, with the reference operators on the fakes' streams. Every legal order gives the bits of
 * the CPU. And no event is there for nothing: each is taken away, by what it is called, and a run
 * of some order must come out wrong.
 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec.h"
#include "fake.h"
#include "ranks.h"

#ifndef N_ORDERS
#define N_ORDERS 64
#endif

static int open_nccl(struct skrull_comm *host, struct skrull_comm **ret_comm,
                     struct skrull_error *err)
{
    return skrull_comm_nccl(host, (int)skrull_comm_rank(host), 0, ret_comm, err);
}

static const struct ranks_backend fake_gpu = {
    .name = "cuda", .dtype = SKRULL_DTYPE_F32, .open = open_nccl, .end = fake_thread_end};

static const struct ranks_run base = {.policy = "skrull",
                                      .dp = 2,
                                      .cp = 4,
                                      .cp_mode = SKRULL_CP_MODE_FIXED,
                                      .shard = SKRULL_SHARD_ZIGZAG,
                                      .exchange = SKRULL_EXCHANGE_GATHER,
                                      .loss = SKRULL_LOSS_TOKEN_MEAN,
                                      .n_steps = 2,
                                      .n_sequences = 12,
                                      .longest = 48};

/* What a run in the order of `seed` comes to. */
enum outcome { SAME, DIFFERS, REPORTED, FAILED };

static enum outcome outcome_of(const struct ranks_run *run, const struct ranks_result *expected,
                               uint64_t seed, char *ret_why, size_t size)
{
    struct ranks_result result;
    struct skrull_error err = {0};
    const char *reports;
    bool is_same;
    int rc;

    fake_begin(seed, run->dp * run->cp, run->dp * run->cp);
    rc = ranks_try(run, &result, &err);
    is_same = rc == 0 &&
              memcmp(result.losses, expected->losses, run->n_steps * sizeof(double)) == 0 &&
              memcmp(result.weights, expected->weights, expected->n_weights * sizeof(float)) == 0;
    ranks_result_free(&result);
    reports = fake_end();
    (void)snprintf(ret_why, size, "%s%s", err.message, reports);
    return rc < 0 ? FAILED : reports[0] ? REPORTED : is_same ? SAME : DIFFERS;
}

/* The CPU adds its gradients to those that come around a ring; here both do what devices do. */
static void sum_as_devices(struct training *training)
{
    training->exec->has_shares_apart = true;
}

static void expect_bits(const char *name, const struct ranks_run *like, uint64_t n_orders)
{
    struct ranks_run run = *like;
    struct ranks_result expected;
    char why[512];

    run.plant = sum_as_devices;
    ranks_train(&run, &expected);
    run.plant = NULL;
    run.backend = &fake_gpu;
    for (uint64_t seed = 0; seed < n_orders; seed++) {
        enum outcome outcome = outcome_of(&run, &expected, seed, why, sizeof(why));

        if (outcome != SAME) {
            fail_msg("%s, order %d: outcome %d %s", name, (int)seed, (int)outcome, why);
        }
    }
    print_message("# %s: %d orders, %d pieces of work each\n", name, (int)n_orders,
                  (int)fake_n_run());
    ranks_result_free(&expected);
}

static void test_streams__every_order_gives_the_bits_of_the_cpu(void **state)
{
    struct ranks_run run = base;

    (void)state;
    expect_bits("<2,4> gather", &run, N_ORDERS);
    run.exchange = SKRULL_EXCHANGE_RING;
    run.is_sharded = true;
    expect_bits("<2,4> ring, states sharded", &run, N_ORDERS);
    run.policy = NULL;
    run.n_sequences = 24;
    run.longest = 48;
    run.align = 4;
    run.recompute = true;
    expect_bits("nested groups, ring, align 4, recompute", &run, N_ORDERS / 2);
    run.exchange = SKRULL_EXCHANGE_GATHER;
    run.is_sharded = false;
    expect_bits("nested groups, gather", &run, N_ORDERS / 2);
    run = base;
    run.policy = "joint";
    run.cp_mode = SKRULL_CP_MODE_ELASTIC;
    run.exchange = SKRULL_EXCHANGE_RING;
    expect_bits("<2,4> joint elastic, ring", &run, N_ORDERS / 2);
}

static void test_streams__any_number_of_ranks(void **state)
{
    static const uint32_t grids[][2] = {{1, 1}, {1, 2}, {3, 1}, {1, 3}, {2, 2},
                                        {1, 5}, {2, 3}, {1, 7}, {1, 8}};

    (void)state;
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++) {
        struct ranks_run run = base;
        char name[32];

        run.dp = grids[i][0];
        run.cp = grids[i][1];
        run.policy = run.cp > 1 ? "uniform" : "skrull";
        run.longest = 24; /* four times that fits one rank */
        run.exchange = i % 2 ? SKRULL_EXCHANGE_RING : SKRULL_EXCHANGE_GATHER;
        (void)snprintf(name, sizeof(name), "<%u,%u>", run.dp, run.cp);
        expect_bits(name, &run, 8);
    }
}

/* Times are the device's: pieces of work, here, and reading them changes nothing. */
static void test_streams__times(void **state)
{
    struct ranks_run run = base;
    struct ranks_result plain, timed;

    (void)state;
    run.exchange = SKRULL_EXCHANGE_RING;
    run.backend = &fake_gpu;
    fake_begin(5, 8, 8);
    ranks_train(&run, &plain);
    assert_string_equal(fake_end(), "");
    run.is_timed = true;
    fake_begin(5, 8, 8);
    ranks_train(&run, &timed);
    assert_string_equal(fake_end(), "");
    assert_memory_equal(timed.weights, plain.weights, plain.n_weights * sizeof(float));
    assert_true(plain.times.compute_busy_ns == 0);
    assert_true(timed.times.compute_busy_ns > 0);
    assert_true(timed.times.compute_wait_ns > 0);
    assert_true(timed.times.exchange_busy_ns > 0);
    assert_true(timed.times.exchange_wait_ns == timed.times.compute_wait_ns);
    ranks_result_free(&plain);
    ranks_result_free(&timed);
}

/* What is taken away: of the event of that name, the records or the waits. */
static struct {
    const struct device_ops *whole;
    struct device_ops ops;
    const char *name;
    bool drops_records;
    int turn; /* -1: every use, 0 or 1: every other one */
} mutation;

static _Thread_local uint32_t n_uses; /* of the event, by this rank */

static bool is_dropped(const struct device_event *event, bool is_record)
{
    if (strcmp(event->name, mutation.name) != 0 || mutation.drops_records != is_record) {
        return false;
    }
    return mutation.turn < 0 || n_uses++ % 2 == (uint32_t)mutation.turn;
}

static int lossy_record(struct device *device, struct device_event *event, void *stream,
                        struct skrull_error *err)
{
    return is_dropped(event, true) ? 0 : mutation.whole->record(device, event, stream, err);
}

static int lossy_wait(struct device *device, void *stream, const struct device_event *event,
                      struct skrull_error *err)
{
    return is_dropped(event, false) ? 0 : mutation.whole->wait(device, stream, event, err);
}

static int lossy_is_past(struct device *device, const struct device_event *event,
                         struct skrull_error *err)
{
    return is_dropped(event, false) ? 1 : mutation.whole->is_past(device, event, err);
}

static void plant_mutation(struct training *training)
{
    n_uses = 0;
    training->exec->device->ops = &mutation.ops;
}

static void find_device_ops(void)
{
    struct device *device;

    fake_begin(0, 1, 1);
    assert_int_equal(device_open("cuda", 0, &device, NULL), 0);
    mutation.whole = device->ops;
    mutation.ops = *device->ops;
    mutation.ops.record = lossy_record;
    mutation.ops.wait = lossy_wait;
    mutation.ops.is_past = lossy_is_past;
    device_close(device);
    (void)fake_end();
}

/* In a process of its own: what has lost its order may crash. */
static bool is_noticed(const struct ranks_run *run, const struct ranks_result *expected,
                       uint64_t seed)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    char why[512];
    int status = 0;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++) {
            (void)signal(deadly[i], SIG_DFL);
        }
        _exit((int)outcome_of(run, expected, seed, why, sizeof(why)));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return !WIFEXITED(status) || WEXITSTATUS(status) != SAME;
}

/* Between a trainer's begin and end nobody asks the device for anything. */
static _Thread_local bool is_in_micro_batch;
static atomic_uint n_micro_batches, n_waits, n_waits_within;

static int begin_counted(void *arg, struct skrull_exec *exec, const struct skrull_layout *layout,
                         struct skrull_error *err)
{
    const struct skrull_trainer trainer = decoder_trainer(arg);

    is_in_micro_batch = true;
    n_micro_batches++;
    return trainer.begin(arg, exec, layout, err);
}

static int end_counted(void *arg, struct skrull_error *err)
{
    const struct skrull_trainer trainer = decoder_trainer(arg);
    int rc = trainer.end(arg, err);

    is_in_micro_batch = false;
    return rc;
}

static int counted_is_past(struct device *device, const struct device_event *event,
                           struct skrull_error *err)
{
    n_waits++;
    n_waits_within += is_in_micro_batch;
    return mutation.whole->is_past(device, event, err);
}

static void plant_counts(struct training *training)
{
    training->trainer.begin = begin_counted;
    training->trainer.end = end_counted;
    training->exec->device->ops = &mutation.ops;
}

static void test_streams__host_waits_for_nothing_in_a_micro_batch(void **state)
{
    struct ranks_run run = base;
    struct ranks_result result;

    (void)state;
    find_device_ops();
    mutation.ops = *mutation.whole;
    mutation.ops.is_past = counted_is_past;
    run.exchange = SKRULL_EXCHANGE_RING;
    run.backend = &fake_gpu;
    run.plant = plant_counts;
    fake_begin(2, 8, 8);
    ranks_train(&run, &result);
    assert_string_equal(fake_end(), "");
    assert_true(n_micro_batches >= 8 * run.n_steps);
    assert_true(n_waits >= 8 * run.n_steps);
    assert_int_equal(n_waits_within, 0);
    ranks_result_free(&result);
}

/* Some order notices that what `mutation` says is gone. */
static void expect_noticed(const struct ranks_run *run, const struct ranks_result *expected)
{
    static const char *const turns[] = {"all", "the first, third, ... of the",
                                        "the second, fourth, ... of the"};
    const char *what = mutation.drops_records ? "records" : "waits";
    const char *turn = turns[mutation.turn + 1];
    uint64_t n_noticed = 0, seed = 0;

    while (seed < N_ORDERS && n_noticed < 2) {
        n_noticed += is_noticed(run, expected, seed++);
    }
    print_message("# without %s %s of \"%s\": %d of %d orders notice\n", turn, what, mutation.name,
                  (int)n_noticed, (int)seed);
    if (n_noticed == 0) {
        fail_msg("no order needs %s %s of \"%s\"", turn, what, mutation.name);
    }
}

static void test_streams__no_event_is_there_for_nothing(void **state)
{
    enum { N_STREAM_EVENTS = 6 };
    static const char *const names[] = {"keys ready",       "keys landed", "gradients ready",
                                        "gradients landed", "sums ready",  "sums landed",
                                        "staging copied",   "finished"};
    static const enum skrull_exchange exchanges[] = {SKRULL_EXCHANGE_GATHER, SKRULL_EXCHANGE_RING};

    (void)state;
    find_device_ops();
    for (int e = 0; e < 2; e++) {
        struct ranks_run run = base;
        struct ranks_result expected;

        run.dp = 1;
        run.cp = 3;
        run.policy = "uniform";
        run.n_sequences = 24;
        run.is_sharded = true; /* compute stands between the two sums of a step */
        run.exchange = exchanges[e];
        run.plant = sum_as_devices;
        ranks_train(&run, &expected);
        run.backend = &fake_gpu;
        run.plant = plant_mutation;
        run.timeout_ms = 1000;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            /* Who waits for the host's sake has one use a step or less. */
            mutation.turn = i < N_STREAM_EVENTS ? 1 : -1;
            for (mutation.name = names[i]; mutation.turn >= -1; mutation.turn--) {
                mutation.drops_records = false;
                expect_noticed(&run, &expected);
                mutation.drops_records = true;
                expect_noticed(&run, &expected);
            }
        }
        ranks_result_free(&expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams__every_order_gives_the_bits_of_the_cpu),
        cmocka_unit_test(test_streams__any_number_of_ranks),
        cmocka_unit_test(test_streams__times),
        cmocka_unit_test(test_streams__host_waits_for_nothing_in_a_micro_batch),
        cmocka_unit_test(test_streams__no_event_is_there_for_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

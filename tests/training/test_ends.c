/* Threads as ranks: what ends a run, and that it ends on all of them with a message. */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "comm.h"

#define N_RANKS 4

/* A rank: its plan, and what came of it. */
struct rank {
    struct skrull_comm *comm;
    struct skrull_plan plan;
    struct skrull_rank part;
    bool is_absent, has_ended;
    int rc;
    struct skrull_error err;
};

static void *greet(void *arg)
{
    struct rank *rank = arg;

    if (!rank->is_absent) {
        rank->rc =
            skrull_comm_check_plan(rank->comm, rank->has_ended ? NULL : &rank->plan, &rank->err);
    }
    return NULL;
}

/* A sound plan in parts: digests of ranks that make up the plan's. */
static void make_ranks(struct rank *ranks)
{
    uint8_t digests[N_RANKS][SKRULL_DIGEST_SIZE], digest[SKRULL_DIGEST_SIZE];

    memset(ranks, 0, N_RANKS * sizeof(*ranks));
    for (uint32_t r = 0; r < N_RANKS; r++) {
        memset(digests[r], (int)r + 1, SKRULL_DIGEST_SIZE);
    }
    assert_int_equal(skrull_plan_digest(&digests[0][0], N_RANKS, digest), 0);
    for (uint32_t r = 0; r < N_RANKS; r++) {
        ranks[r].plan = (struct skrull_plan){.job = "a",
                                             .uid = "11111111111111111111111111111111",
                                             .step = 5,
                                             .dp = 2,
                                             .cp = 2,
                                             .n_ranks = 1};
        ranks[r].plan.ranks = &ranks[r].part;
        ranks[r].part.data_rank = r;
        memcpy(ranks[r].part.digest, digests[r], SKRULL_DIGEST_SIZE);
        memcpy(ranks[r].plan.digest, digest, SKRULL_DIGEST_SIZE);
    }
}

static void greet_all(struct rank *ranks, int64_t timeout_ms)
{
    struct skrull_comm *comms[N_RANKS];
    pthread_t threads[N_RANKS];

    assert_int_equal(skrull_comm_threads(N_RANKS, timeout_ms, comms, NULL), 0);
    for (uint32_t r = 0; r < N_RANKS; r++) {
        ranks[r].comm = comms[r];
        assert_int_equal(pthread_create(&threads[r], NULL, greet, &ranks[r]), 0);
    }
    for (uint32_t r = 0; r < N_RANKS; r++) {
        assert_int_equal(pthread_join(threads[r], NULL), 0);
        skrull_comm_free(comms[r]);
    }
}

/* Every rank fails with `code` and a message that holds `text`. */
static void expect_all(const struct rank *ranks, int code, const char *text)
{
    for (uint32_t r = 0; r < N_RANKS; r++) {
        assert_int_equal(ranks[r].rc, code);
        if (!strstr(ranks[r].err.message, text)) {
            fail_msg("rank %u says: %s", r, ranks[r].err.message);
        }
    }
}

static void test_comm_check_plan__same_plan(void **state)
{
    struct rank ranks[N_RANKS];

    (void)state;
    make_ranks(ranks);
    greet_all(ranks, 10000);
    for (uint32_t r = 0; r < N_RANKS; r++) {
        assert_int_equal(ranks[r].rc, 0);
        ranks[r].has_ended = true;
    }
    greet_all(ranks, 10000);
    assert_int_equal(ranks[1].rc, 0);
}

static void test_comm_check_plan__differing_plan(void **state)
{
    struct rank ranks[N_RANKS];

    (void)state;
    make_ranks(ranks);
    ranks[2].plan.digest[0] ^= 1;
    greet_all(ranks, 10000);
    expect_all(ranks, SKRULL_ERR_FAILED_PRECONDITION, "data rank 2 was given another plan");

    make_ranks(ranks);
    ranks[2].part.digest[15] ^= 1; /* all carry the same label, and one another content */
    greet_all(ranks, 10000);
    expect_all(ranks, SKRULL_ERR_FAILED_PRECONDITION, "do not make up the plan");

    make_ranks(ranks);
    ranks[3].plan.uid = "21111111111111111111111111111111";
    greet_all(ranks, 10000);
    expect_all(ranks, SKRULL_ERR_FAILED_PRECONDITION,
               "data rank 3 was given a plan of another job");

    make_ranks(ranks);
    ranks[1].plan.step = 6;
    greet_all(ranks, 10000);
    expect_all(ranks, SKRULL_ERR_FAILED_PRECONDITION, "data rank 1 is at step 6");

    make_ranks(ranks);
    ranks[1].has_ended = true;
    greet_all(ranks, 10000);
    expect_all(ranks, SKRULL_ERR_FAILED_PRECONDITION, "data rank 1 has fewer plans");

    make_ranks(ranks);
    ranks[1].part.data_rank = 0;
    greet_all(ranks, 10000);
    expect_all(ranks, SKRULL_ERR_FAILED_PRECONDITION, "rank 1 was given the plan of data rank 0");
}

static void test_comm__peer_never_comes(void **state)
{
    struct rank ranks[N_RANKS];
    int64_t started = comm_now_ns();
    uint32_t n_timed_out = 0;

    (void)state;
    make_ranks(ranks);
    ranks[2].is_absent = true;
    greet_all(ranks, 100);
    assert_true(comm_now_ns() - started < INT64_C(10000000000));
    for (uint32_t r = 0; r < N_RANKS; r++) {
        if (r != 2) {
            assert_non_null(strstr(ranks[r].err.message, "data rank 2, which did not come"));
            n_timed_out += ranks[r].rc == SKRULL_ERR_DEADLINE_EXCEEDED;
            assert_true(ranks[r].rc == SKRULL_ERR_DEADLINE_EXCEEDED ||
                        ranks[r].rc == SKRULL_ERR_ABORTED);
        }
    }
    assert_true(n_timed_out >= 1);
}

static void *give_up(void *arg)
{
    struct rank *rank = arg;

    (void)skrull_error_set(&rank->err, SKRULL_ERR_INTERNAL, "the disk is full");
    skrull_comm_fail(rank->comm, &rank->err);
    return NULL;
}

static void test_comm__rank_gives_up(void **state)
{
    struct rank ranks[2];
    struct skrull_comm *comms[2];
    pthread_t thread;
    char all[2];

    (void)state;
    memset(ranks, 0, sizeof(ranks));
    assert_int_equal(skrull_comm_threads(2, 60000, comms, NULL), 0);
    ranks[1].comm = comms[1];
    assert_int_equal(pthread_create(&thread, NULL, give_up, &ranks[1]), 0);
    assert_int_equal(skrull_comm_gather(comms[0], "x", 1, all, &ranks[0].err), SKRULL_ERR_ABORTED);
    assert_non_null(strstr(ranks[0].err.message, "the disk is full"));
    assert_int_equal(pthread_join(thread, NULL), 0);
    skrull_comm_free(comms[0]);
    skrull_comm_free(comms[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comm_check_plan__same_plan),
        cmocka_unit_test(test_comm_check_plan__differing_plan),
        cmocka_unit_test(test_comm__peer_never_comes),
        cmocka_unit_test(test_comm__rank_gives_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

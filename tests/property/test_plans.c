/*
 * What every plan must be, whatever the grid, the options, the batch and the policy: held on
 * thousands of random cases, by code that shares nothing with the planner. A failure prints the
 * round; SKRULL_SEED and SKRULL_ROUND bring it back.
 *
 * usage: test_plans [ROUNDS]
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"
#include "codec_rpc.h"
#include "plan_rules.h"
#include "property/audit.h"
#include "property/random_case.h"

#define MESSAGE_BYTES ((size_t)1 << 30)

/* `policy` over all that are built; those that search, and take long, in one of eight rounds. */
#define REPEAT_FOR_POLICIES(policy, round)                                                         \
    for (const char *const *policy = skrull_planner_policies(); *policy; policy++)                 \
        if (is_due(*policy, round))

static struct random_rounds rounds;

static bool is_due(const char *policy, uint64_t round)
{
    return round % 8 == 0 || strcmp(policy, "joint") != 0;
}

/* Prints the case and fails. */
static void fail_case(const struct random_case *random, const char *what)
{
    random_case_print(random);
    fail_msg("%s", what);
}

static struct skrull_plan *plan_case(const struct random_case *random)
{
    struct skrull_plan *plan = NULL;
    struct skrull_error err = {0};

    if (skrull_planner_run(&random->input, &plan, &err)) {
        fail_case(random, err.message);
    }
    return plan;
}

struct checked {
    const struct random_case *random;
    char first_fault[AUDIT_MESSAGE_SIZE];
};

static void keep_first(void *arg, const char *message)
{
    struct checked *checked = arg;

    if (!checked->first_fault[0]) {
        strncat(checked->first_fault, message, sizeof(checked->first_fault) - 1);
    }
}

/* plan_check must find nothing, too; without the index, since rows may repeat. */
static void check_case(const struct random_case *random, const struct skrull_plan *plan)
{
    struct checked checked = {.random = random};
    struct plan_rules rules;

    assert_int_equal(plan_rules_init(&random->input.options, &rules), 0);
    rules.rules.n_sequences = random->input.n_sequences;
    if (plan_check(plan, &rules.rules, keep_first, &checked)) {
        fail_case(random, checked.first_fault);
    }
}

/* All that can be said of one plan. */
static void hold(const struct random_case *random, struct skrull_plan *plan)
{
    char message[AUDIT_MESSAGE_SIZE];

    if (audit_plan(random, plan, message) || audit_digests(plan, message) ||
        audit_order(random, plan, message) || audit_estimate(random, plan, message)) {
        fail_case(random, message);
    }
    check_case(random, plan);
}

static void test_plans__hold_on_random_cases(void **state)
{
    (void)state;
    for (uint64_t round = rounds.first; round < rounds.end; round++) {
        REPEAT_FOR_POLICIES(policy, round)
        {
            struct random_case *random = random_case_new(&rounds, round, *policy);
            struct skrull_plan *plan = plan_case(random);

            hold(random, plan);
            skrull_plan_free(plan);
            random_case_free(random);
        }
    }
}

/* Prime and composite, wide and deep: each grid once. */
static void test_plans__hold_on_every_grid_of_up_to_64_ranks(void **state)
{
    (void)state;
    for (uint32_t dp = 1; dp <= CASE_MAX_RANKS; dp++) {
        for (uint32_t cp = 1; dp * cp <= CASE_MAX_RANKS; cp++) {
            REPEAT_FOR_POLICIES(policy, 0)
            {
                struct random_case *random = random_case_on_grid(&rounds, dp, cp, *policy);
                struct skrull_plan *plan = plan_case(random);

                hold(random, plan);
                skrull_plan_free(plan);
                random_case_free(random);
            }
        }
    }
}

static struct rpc_bytes pack(struct arena *arena, const struct skrull_plan *plan)
{
    struct skrull_error err = {0};
    struct rpc_bytes bytes = {0};

    if (codec_plan_pack(arena, plan, NULL, 0, &bytes, &err)) {
        fail_msg("%s", err.message);
    }
    return bytes;
}

static bool is_same(struct rpc_bytes a, struct rpc_bytes b)
{
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* Made again from a copy of the input elsewhere in memory, sent and received: the same bytes, and
 * what was received proves its own digests. */
static void hold_bytes(const struct random_case *random)
{
    struct arena *arena = arena_new(MESSAGE_BYTES);
    struct skrull_plan *plan = plan_case(random), *again, *received = NULL;
    struct random_case *copy = malloc(sizeof(*copy));
    struct rpc_bytes bytes = pack(arena, plan);
    char message[AUDIT_MESSAGE_SIZE];

    assert_non_null(copy);
    memcpy(copy, random, sizeof(*copy));
    copy->input.sequences = copy->sequences;
    again = plan_case(copy);
    if (!is_same(bytes, pack(arena, again))) {
        fail_case(random, "made twice it has other bytes");
    }
    assert_int_equal(codec_plan_unpack(bytes, &received, NULL), 0);
    if (!is_same(bytes, pack(arena, received))) {
        fail_case(random, "received it has other bytes");
    }
    if (audit_plan(random, received, message) || audit_digests(received, message)) {
        fail_case(random, message);
    }
    skrull_plan_free(received);
    skrull_plan_free(again);
    skrull_plan_free(plan);
    free(copy);
    arena_free(arena);
}

static void test_plans__have_the_same_bytes_twice_and_over_the_wire(void **state)
{
    (void)state;
    for (uint64_t round = rounds.first; round < rounds.end; round += 4) {
        REPEAT_FOR_POLICIES(policy, round)
        {
            struct random_case *random = random_case_new(&rounds, round, *policy);

            hold_bytes(random);
            random_case_free(random);
        }
    }
}

/* As planned: another order permutes the micro-batches of a DP rank in fixed mode, of the whole job
 * in elastic, so that the same placements take other times. */
static void test_plans__in_elastic_mode_are_never_slower_than_in_fixed(void **state)
{
    (void)state;
    for (uint64_t round = rounds.first; round < rounds.end; round += 8) {
        struct random_case *random = random_case_new(&rounds, round, "joint");
        struct skrull_plan *plan;

        random->input.options.micro_batch_order = SKRULL_MICRO_BATCH_ORDER_AS_PLANNED;
        random->input.options.cp_mode = SKRULL_CP_MODE_FIXED;
        if (skrull_planner_run(&random->input, &plan, NULL) == 0) { /* it may be too long for CP */
            const int64_t fixed_ns = plan->estimate.iteration_ns;

            skrull_plan_free(plan);
            random->input.options.cp_mode = SKRULL_CP_MODE_ELASTIC;
            plan = plan_case(random);
            if (plan->estimate.iteration_ns > fixed_ns) {
                fail_case(random, "elastic is slower than fixed");
            }
            skrull_plan_free(plan);
        }
        random_case_free(random);
    }
}

/* Another policy may refuse the batch; else its plan must take as long at least. */
static void hold_slower(const struct random_case *random, const struct skrull_plan *plan,
                        const char *what)
{
    struct skrull_plan *other = NULL;

    (void)skrull_planner_run(&random->input, &other, NULL);
    if (other && plan->estimate.iteration_ns > other->estimate.iteration_ns) {
        fail_case(random, what);
    }
    skrull_plan_free(other);
}

/* What searches keeps the plans of the other policies where it finds none better. */
static void test_plans__by_search_are_never_slower_than_by_the_other_policies(void **state)
{
    (void)state;
    for (uint64_t round = rounds.first; round < rounds.end; round += 8) {
        struct random_case *random = random_case_new(&rounds, round, "joint");
        struct skrull_plan *plan = plan_case(random);

        for (const char *const *policy = skrull_planner_policies(); *policy; policy++) {
            random->input.options.policy = *policy;
            hold_slower(random, plan, "joint is slower");
        }
        skrull_plan_free(plan);
        random_case_free(random);
    }
}

static uint32_t most_micro_batches(const struct skrull_plan *plan)
{
    uint32_t most = 0;

    for (size_t r = 0; r < plan->n_ranks; r++) {
        most = plan->ranks[r].n_micro_batches > most ? plan->ranks[r].n_micro_batches : most;
    }
    return most;
}

/* Ten times the steps never give a slower plan, nor refuse what fewer held. Returns the last plan.
 */
static struct skrull_plan *hold_effort(struct random_case *random)
{
    struct skrull_plan *plan = NULL;

    for (uint64_t effort = 1; effort <= 1000; effort *= 10) {
        struct skrull_plan *next = NULL;

        random->input.options.effort = effort;
        (void)skrull_planner_run(&random->input, &next, NULL);
        if (plan && (!next || next->estimate.iteration_ns > plan->estimate.iteration_ns)) {
            fail_case(random, "ten times the steps give a slower plan, or none");
        }
        skrull_plan_free(plan);
        plan = next;
    }
    return plan;
}

/* Also where micro-batches are put in another order than they were searched in, and where as few
 * are allowed as the search itself has come down to: then other policies may give no start. */
static void test_plans__by_more_search_are_never_slower(void **state)
{
    (void)state;
    for (uint64_t round = rounds.first; round < rounds.end; round += 16) {
        struct random_case *random = random_case_new(&rounds, round, "joint");
        struct skrull_plan *plan = hold_effort(random);

        if (!plan) {
            fail_case(random, "no plan");
        }
        random->input.options.micro_batch_multiple = random->input.options.micro_batch_min = 0;
        random->input.options.micro_batches = most_micro_batches(plan);
        skrull_plan_free(plan);
        skrull_plan_free(hold_effort(random));
        random_case_free(random);
    }
}

/* Names label a plan; what ranks act on is the same under any. */
static void test_plans__have_digests_of_their_content_alone(void **state)
{
    (void)state;
    for (uint64_t round = rounds.first; round < rounds.end; round += 16) {
        REPEAT_FOR_POLICIES(policy, round)
        {
            struct random_case *random = random_case_new(&rounds, round, *policy);
            struct skrull_plan *plan = plan_case(random), *other;

            random->input.job = "another";
            random->input.uid = NULL;
            random->input.revision += 1;
            other = plan_case(random);
            if (memcmp(plan->digest, other->digest, SKRULL_DIGEST_SIZE) != 0) {
                fail_case(random, "the digest depends on the name, uid or revision");
            }
            skrull_plan_free(other);
            random->input.step ^= 1;
            other = plan_case(random);
            if (memcmp(plan->digest, other->digest, SKRULL_DIGEST_SIZE) == 0) {
                fail_case(random, "another step has the same digest");
            }
            skrull_plan_free(other);
            skrull_plan_free(plan);
            random_case_free(random);
        }
    }
}

/* The longest sequence that fits is planned, one token more is refused and named. */
static void hold_limit(struct random_case *random)
{
    const uint64_t longest = skrull_planner_longest(&random->input.options);
    struct skrull_plan *plan = NULL;
    struct skrull_error err = {0};
    char words[64];

    if (longest >= UINT32_MAX) {
        return;
    }
    random->input.options.micro_batches = 0; /* a longer sequence may need another micro-batch */
    random->sequences[0].length = (uint32_t)longest;
    random->sequences[0].loss_tokens = 0;
    plan = plan_case(random);
    hold(random, plan);
    skrull_plan_free(plan);
    plan = NULL;
    random->sequences[0].length++;
    (void)snprintf(words, sizeof(words), "at most %" PRIu64 " fit", longest);
    if (skrull_planner_run(&random->input, &plan, &err) != SKRULL_ERR_INVALID_ARGUMENT || plan ||
        !strstr(err.message, words)) {
        fail_case(random, "a sequence that fits nowhere is not refused, or not by its limit");
    }
}

static void test_plans__fit_up_to_the_longest_and_no_further(void **state)
{
    (void)state;
    for (uint64_t round = rounds.first; round < rounds.end; round += 4) {
        REPEAT_FOR_POLICIES(policy, round)
        {
            struct random_case *random = random_case_new(&rounds, round, *policy);

            hold_limit(random);
            random_case_free(random);
        }
    }
}

/* The count that a batch takes by itself is enough; one less is kept, or refused; fewer than the
 * tokens fill are refused. */
static void hold_count(struct random_case *random)
{
    struct skrull_planner_options *options = &random->input.options;
    const uint64_t capacity = (uint64_t)options->bucket_tokens * options->dp * options->cp;
    struct skrull_plan *plan;
    uint64_t tokens = 0;
    int rc;

    for (size_t k = 0; k < random->input.n_sequences; k++) {
        tokens += random->sequences[k].length;
    }
    options->micro_batches = options->micro_batch_multiple = options->micro_batch_min = 0;
    plan = plan_case(random);
    options->micro_batches = most_micro_batches(plan);
    skrull_plan_free(plan);
    plan = plan_case(random);
    hold(random, plan);
    skrull_plan_free(plan);
    plan = NULL;
    options->micro_batches -= options->micro_batches > 1;
    rc = skrull_planner_run(&random->input, &plan, NULL);
    if (rc != 0 && rc != SKRULL_ERR_INVALID_ARGUMENT) {
        fail_case(random, "a count is kept or refused");
    }
    if (plan) {
        hold(random, plan);
        skrull_plan_free(plan);
        plan = NULL;
    }
    options->micro_batches = (uint32_t)(tokens / capacity < 1000 ? tokens / capacity : 1000);
    if (options->micro_batches > 0 && tokens % capacity > 0 &&
        skrull_planner_run(&random->input, &plan, NULL) != SKRULL_ERR_INVALID_ARGUMENT) {
        fail_case(random, "more tokens than fit in so few micro-batches");
    }
}

static void test_plans__keep_an_exact_count_or_are_refused(void **state)
{
    (void)state;
    for (uint64_t round = rounds.first; round < rounds.end; round += 2) {
        REPEAT_FOR_POLICIES(policy, round)
        {
            struct random_case *random = random_case_new(&rounds, round, *policy);

            hold_count(random);
            random_case_free(random);
        }
    }
}

/* Changes one thing in a plan, by chance; all of it is seen by the audit. */
static void spoil(struct skrull_plan *plan, uint64_t *state)
{
    struct skrull_segment *segment =
        &plan->segments[random_below(state, (uint32_t)plan->n_segments)];

    switch (random_below(state, 12)) {
    case 0:
        segment->sample++;
        break;
    case 1:
        segment->index ^= 1;
        break;
    case 2:
        segment->dataset ^= 1;
        break;
    case 3:
        segment->sequence_length++;
        break;
    case 4:
        segment->token_begin++;
        break;
    case 5:
        segment->token_end++;
        break;
    case 6:
        segment->padded_tokens++;
        break;
    case 7:
        segment->group_first++;
        break;
    case 8:
        segment->group_size++;
        break;
    case 9:
        segment->loss_weight += 1;
        break;
    case 10:
        plan->totals.loss_tokens++;
        break;
    default:
        plan->micro_batches[random_below(state, (uint32_t)plan->n_micro_batches)].dummy ^= true;
        break;
    }
}

/* The audit is worth nothing unless it can fail. */
static void test_audit_plan__sees_any_change(void **state)
{
    (void)state;
    for (uint64_t round = rounds.first; round < rounds.end; round += 2) {
        struct random_case *random = random_case_new(&rounds, round, "skrull");
        struct skrull_plan *plan = plan_case(random);
        char message[AUDIT_MESSAGE_SIZE];

        spoil(plan, &random->state);
        if (audit_plan(random, plan, message) == 0) {
            fail_case(random, "the audit did not see that the plan was spoilt");
        }
        skrull_plan_free(plan);
        random_case_free(random);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans__hold_on_random_cases),
        cmocka_unit_test(test_plans__hold_on_every_grid_of_up_to_64_ranks),
        cmocka_unit_test(test_plans__have_the_same_bytes_twice_and_over_the_wire),
        cmocka_unit_test(test_plans__by_search_are_never_slower_than_by_the_other_policies),
        cmocka_unit_test(test_plans__in_elastic_mode_are_never_slower_than_in_fixed),
        cmocka_unit_test(test_plans__by_more_search_are_never_slower),
        cmocka_unit_test(test_plans__have_digests_of_their_content_alone),
        cmocka_unit_test(test_plans__fit_up_to_the_longest_and_no_further),
        cmocka_unit_test(test_plans__keep_an_exact_count_or_are_refused),
        cmocka_unit_test(test_audit_plan__sees_any_change),
    };

    rounds = random_rounds_get(argc > 1 ? strtoull(argv[1], NULL, 10) : 1000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Plans of reported inputs, and looks into them. */
#include "unit/plan/reports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plan_rules.h"

static void print_fault(void *arg, const char *message)
{
    (void)arg;
    print_error("# %s\n", message);
}

/* The fixture's index: row is the place in the batch. */
static void look_up(void *arg, uint32_t dataset, uint64_t row, struct plan_check_sequence *ret)
{
    const struct fixture *fixture = arg;

    *ret = (struct plan_check_sequence){0};
    if (row < fixture->input.n_sequences && fixture->sequences[row].dataset == dataset) {
        ret->length = fixture->sequences[row].length;
        ret->loss_tokens = fixture->sequences[row].loss_tokens;
    }
}

static void check(struct fixture *fixture, const struct skrull_plan *plan)
{
    struct plan_rules rules;

    assert_int_equal(plan_rules_init(&fixture->input.options, &rules), 0);
    rules.rules.n_sequences = fixture->input.n_sequences;
    rules.rules.lookup = look_up;
    rules.rules.arg = fixture;
    assert_int_equal(plan_check(plan, &rules.rules, print_fault, NULL), 0);
}

struct skrull_plan *reports_replan(struct fixture *fixture, const char *policy)
{
    struct skrull_plan *plan = fixture_plan(fixture, policy);

    check(fixture, plan);
    return plan;
}

struct skrull_plan *reports_plan(struct fixture *fixture, const char *policy,
                                 const uint32_t *lengths, size_t n)
{
    fixture_set(fixture, lengths, n);
    return reports_replan(fixture, policy);
}

void reports_refuse(struct fixture *fixture, const char *policy, const uint32_t *lengths, size_t n,
                    const char *const *words, size_t n_words)
{
    struct skrull_plan *plan = NULL;
    struct skrull_error err = {0};

    fixture_set(fixture, lengths, n);
    fixture->input.options.policy = policy;
    assert_int_equal(skrull_planner_run(&fixture->input, &plan, &err), SKRULL_ERR_INVALID_ARGUMENT);
    assert_null(plan);
    for (size_t i = 0; i < n_words; i++) {
        if (!strstr(err.message, words[i])) {
            fail_msg("'%s' is not in: %s", words[i], err.message);
        }
    }
}

uint32_t reports_most_micro_batches(const struct skrull_plan *plan)
{
    uint32_t most = 0;

    for (size_t r = 0; r < plan->n_ranks; r++) {
        most = plan->ranks[r].n_micro_batches > most ? plan->ranks[r].n_micro_batches : most;
    }
    return most;
}

uint32_t reports_working(const struct skrull_plan *plan, uint32_t rank)
{
    return plan->ranks[rank].n_micro_batches - reports_dummies(plan, rank);
}

uint32_t reports_dummies(const struct skrull_plan *plan, uint32_t rank)
{
    uint32_t n = 0;

    assert_true(rank < plan->n_ranks);
    for (uint32_t m = 0; m < plan->ranks[rank].n_micro_batches; m++) {
        n += reports_micro_batch(plan, rank, m)->dummy;
    }
    return n;
}

const struct skrull_micro_batch *reports_micro_batch(const struct skrull_plan *plan, uint32_t rank,
                                                     uint32_t m)
{
    assert_true(rank < plan->n_ranks);
    assert_true(m < plan->ranks[rank].n_micro_batches);
    return &plan->micro_batches[plan->ranks[rank].first_micro_batch + m];
}

const struct skrull_segment *reports_segments(const struct skrull_plan *plan, uint32_t rank,
                                              uint32_t m)
{
    const struct skrull_micro_batch *micro_batch = reports_micro_batch(plan, rank, m);

    assert_true(micro_batch->n_segments > 0);
    return &plan->segments[micro_batch->first_segment];
}

const struct skrull_segment *reports_find(const struct skrull_plan *plan, uint64_t sample)
{
    for (size_t i = 0; i < plan->n_segments; i++) {
        if (plan->segments[i].sample == sample) {
            return &plan->segments[i];
        }
    }
    fail_msg("no sample %llu", (unsigned long long)sample);
    return NULL;
}

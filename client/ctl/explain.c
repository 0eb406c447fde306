/*
 * Reads a plan's estimates backwards. A rank that waited in a micro-batch ends it with its largest
 * group, all of whose members end at the same time; one of them never waited, and what that one did
 * is why the others end when they do.
 */
#include "explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cost/cost.h"
#include "plan_print.h"

#define MOST_SEQUENCES 10 /* of the distributed ones, the longest are listed */

static const struct skrull_micro_batch *micro_batch_at(const struct skrull_plan *plan,
                                                       size_t i_rank, uint32_t m)
{
    const struct skrull_rank *rank = &plan->ranks[i_rank];

    return m < rank->n_micro_batches ? &plan->micro_batches[rank->first_micro_batch + m] : NULL;
}

static uint32_t most_micro_batches(const struct skrull_plan *plan)
{
    uint32_t most = 0;

    for (size_t i = 0; i < plan->n_ranks; i++) {
        most = plan->ranks[i].n_micro_batches > most ? plan->ranks[i].n_micro_batches : most;
    }
    return most;
}

/* When a rank is done with its micro-batches. */
static int64_t end_of(const struct skrull_plan *plan, size_t i_rank)
{
    int64_t end_ns = 0;

    for (uint32_t m = 0; m < plan->ranks[i_rank].n_micro_batches; m++) {
        end_ns += micro_batch_at(plan, i_rank, m)->estimate.iteration_ns;
    }
    return end_ns;
}

/* The member of the rank's largest group that did not wait; the rank itself where there is none. */
static size_t waited_for(const struct skrull_plan *plan, size_t i_rank, uint32_t m)
{
    const struct skrull_micro_batch *own = micro_batch_at(plan, i_rank, m);
    const struct skrull_segment *first;

    if (own->n_segments == 0 || own->estimate.idle_ns == 0) {
        return i_rank;
    }
    first = &plan->segments[own->first_segment]; /* of the largest group */
    for (size_t r = first->group_first; r < (size_t)first->group_first + first->group_size; r++) {
        const struct skrull_micro_batch *other =
            r < plan->n_ranks ? micro_batch_at(plan, r, m) : NULL;

        if (other && other->estimate.idle_ns == 0) {
            return r;
        }
    }
    return i_rank;
}

size_t explain_path(const struct skrull_plan *plan, struct explain_step *steps)
{
    const uint32_t n = most_micro_batches(plan);
    size_t last = 0;

    for (size_t i = 1; i < plan->n_ranks; i++) {
        last = end_of(plan, i) > end_of(plan, last) ? i : last;
    }
    for (uint32_t m = n; m > 0; m--) {
        const bool has_one = micro_batch_at(plan, last, m - 1) != NULL;
        const size_t next = has_one ? waited_for(plan, last, m - 1) : last;

        steps[m - 1] = (struct explain_step){
            .micro_batch = m - 1, .i_rank = next, .was_waiting = next != last};
        last = next;
    }
    return n;
}

struct held {
    unsigned n_local, n_shared;
    uint64_t local_tokens, shared_tokens; /* whole lengths */
};

static struct held count_held(const struct skrull_plan *plan,
                              const struct skrull_micro_batch *micro_batch)
{
    const struct skrull_segment *segments = &plan->segments[micro_batch->first_segment];
    struct held held = {0};

    for (uint32_t i = 0; i < micro_batch->n_segments; i++) {
        if (i > 0 && segments[i].sample == segments[i - 1].sample) {
            continue;
        }
        if (segments[i].group_size > 1) {
            held.n_shared++;
            held.shared_tokens += segments[i].sequence_length;
        } else {
            held.n_local++;
            held.local_tokens += segments[i].sequence_length;
        }
    }
    return held;
}

static void print_step(const struct skrull_plan *plan, const struct explain_step *step)
{
    const struct skrull_micro_batch *micro_batch =
        micro_batch_at(plan, step->i_rank, step->micro_batch);
    struct held held;
    char comp[PLAN_MS_SIZE], comm[PLAN_MS_SIZE];

    if (!micro_batch || micro_batch->estimate.iteration_ns == 0) {
        return;
    }
    held = count_held(plan, micro_batch);
    (void)printf("  micro-batch %" PRIu32 ", rank %" PRIu32 "%s: %s ms of computation",
                 step->micro_batch, plan->ranks[step->i_rank].data_rank,
                 step->was_waiting ? ", which the others wait for" : "",
                 plan_ms(micro_batch->estimate.comp_ns, comp));
    if (held.n_local > 0) {
        (void)printf(", %u local (%" PRIu64 " tokens)", held.n_local, held.local_tokens);
    }
    if (held.n_shared > 0) {
        (void)printf(", %u distributed (%" PRIu64 " tokens)", held.n_shared, held.shared_tokens);
    }
    if (micro_batch->estimate.comm_ns > 0) {
        (void)printf(", %s ms of exchange that no local work hides",
                     plan_ms(micro_batch->estimate.comm_ns, comm));
    }
    (void)printf("\n");
}

static double share(int64_t part_ns, const struct skrull_plan *plan)
{
    const double whole_ns = (double)plan->estimate.iteration_ns * (double)plan->n_ranks;

    return whole_ns > 0 ? 100 * (double)part_ns / whole_ns : 0;
}

/* Idle time of all ranks: by micro-batch, and after the last. */
static void print_idle(const struct skrull_plan *plan)
{
    const uint32_t n = most_micro_batches(plan);
    int64_t tail_ns = 0;

    (void)printf("idle, of all ranks' time:");
    for (uint32_t m = 0; m < n; m++) {
        int64_t idle_ns = 0;

        for (size_t i = 0; i < plan->n_ranks; i++) {
            const struct skrull_micro_batch *micro_batch = micro_batch_at(plan, i, m);

            idle_ns += micro_batch ? micro_batch->estimate.idle_ns : 0;
        }
        if (idle_ns > 0) {
            (void)printf(" %.2f %% in micro-batch %" PRIu32 ",", share(idle_ns, plan), m);
        }
    }
    for (size_t i = 0; i < plan->n_ranks; i++) {
        tail_ns += plan->estimate.iteration_ns - end_of(plan, i);
    }
    (void)printf(" %.2f %% after a rank's last micro-batch\n", share(tail_ns, plan));
}

static int compare_longest(const void *left, const void *right)
{
    const struct skrull_segment *const *a = left, *const *b = right;

    if ((*a)->sequence_length != (*b)->sequence_length) {
        return (*a)->sequence_length < (*b)->sequence_length ? 1 : -1;
    }
    return (*a)->sample < (*b)->sample ? -1 : (*a)->sample > (*b)->sample;
}

static void print_sequence(const struct skrull_segment *segment,
                           const struct skrull_cost_model *cost)
{
    const uint32_t length = segment->sequence_length, size = segment->group_size;
    const int64_t whole_ns = cost_comp_ns(cost, length, 1);
    const int64_t part_ns = cost_comp_ns(cost, length, size);
    const enum cost_link link = cost_link_of(cost, segment->group_first, size);
    char whole[PLAN_MS_SIZE], part[PLAN_MS_SIZE], more[PLAN_MS_SIZE], exchange[PLAN_MS_SIZE];

    (void)printf("  sample %" PRIu64 ", %" PRIu32 " tokens on ranks %" PRIu32 " to %" PRIu32
                 ": %s ms on each instead of %s on one; %s ms more work in all, and alone %s ms of "
                 "exchange%s\n",
                 segment->sample, length, segment->group_first, segment->group_first + size - 1,
                 plan_ms(part_ns, part), plan_ms(whole_ns, whole),
                 plan_ms(part_ns * size - whole_ns, more),
                 plan_ms(cost_exchange_ns(cost, link, length), exchange),
                 link == COST_ACROSS ? " across nodes" : "");
}

static int print_sequences(const struct skrull_plan *plan, const struct skrull_cost_model *cost)
{
    const struct skrull_segment **found = calloc(plan->n_segments + 1, sizeof(const void *));
    size_t n = 0;

    if (!found) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < plan->n_segments; i++) {
        const struct skrull_segment *segment = &plan->segments[i];
        const bool is_new = n == 0 || segment->sample != found[n - 1]->sample;

        /* Of the first member, whose segments of a sequence are adjacent: chunk 0 begins it. */
        if (segment->group_size > 1 && segment->token_begin == 0 && is_new) {
            found[n++] = segment;
        }
    }
    qsort(found, n, sizeof(const void *), compare_longest);
    if (n > 0) {
        (void)printf("distributed sequences: %zu%s\n", n,
                     n > MOST_SEQUENCES ? ", the longest" : "");
    }
    for (size_t i = 0; i < n && i < MOST_SEQUENCES; i++) {
        print_sequence(found[i], cost);
    }
    free(found);
    return 0;
}

int explain_print(const struct skrull_plan *plan, const struct skrull_cost_model *cost)
{
    struct explain_step *steps = calloc((size_t)most_micro_batches(plan) + 1, sizeof(*steps));
    char total[PLAN_MS_SIZE];
    size_t n;

    if (!steps) {
        return SKRULL_ERR_RESOURCE_EXHAUSTED;
    }
    n = explain_path(plan, steps);
    (void)printf("why %s ms, micro-batch by micro-batch:\n",
                 plan_ms(plan->estimate.iteration_ns, total));
    for (size_t i = 0; i < n; i++) {
        print_step(plan, &steps[i]);
    }
    free(steps);
    print_idle(plan);
    return cost ? print_sequences(plan, cost) : 0;
}

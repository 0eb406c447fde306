/*
 * What layouts of a whole plan must be together, on random plans of every policy and grid: every
 * token of every sequence is at exactly one place over the ranks, positions and weights are the
 * token's, what one rank says of another is what that one says of itself, and exchanges in the
 * stated order end. Read from the layouts alone; of the plan only the batch is used.
 *
 * usage: test_layouts [ROUNDS]
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <skrull/layout.h>

#include "arena.h"
#include "property/random_case.h"

static struct random_rounds rounds;

/* All layouts of a plan: of rank r, micro-batch m at [first[r] + m]. */
struct layouts {
    const struct random_case *random;
    const struct skrull_plan *plan;
    struct skrull_layout **all;
};

#define HOLD(layouts, claim)                                                                       \
    do {                                                                                           \
        if (!(claim)) {                                                                            \
            random_case_print((layouts)->random);                                                  \
            fail_msg("line %d: %s", __LINE__, #claim);                                             \
        }                                                                                          \
    } while (0)

static const struct skrull_layout *layout_of(const struct layouts *layouts, uint32_t rank,
                                             uint32_t i_micro_batch)
{
    HOLD(layouts, i_micro_batch < layouts->plan->ranks[rank].n_micro_batches);
    return layouts->all[layouts->plan->ranks[rank].first_micro_batch + i_micro_batch];
}

static void make(struct layouts *layouts)
{
    const struct skrull_plan *plan = layouts->plan;
    struct skrull_error err = {0};

    layouts->all = calloc(plan->n_micro_batches + 1, sizeof(struct skrull_layout *));
    assert_non_null(layouts->all);
    for (size_t r = 0; r < plan->n_ranks; r++) {
        for (uint32_t m = 0; m < plan->ranks[r].n_micro_batches; m++) {
            size_t at = plan->ranks[r].first_micro_batch + m;

            if (skrull_layout_new(plan, r, m, &layouts->all[at], &err)) {
                random_case_print(layouts->random);
                fail_msg("%s", err.message);
            }
        }
    }
}

/* The place of a sample in the batch. */
static uint32_t find_sample(const struct layouts *layouts, uint64_t sample)
{
    const struct skrull_planner_input *input = &layouts->random->input;
    size_t low = 0, high = input->n_sequences;

    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;

        if (input->sequences[middle].sample <= sample) {
            low = middle;
        } else {
            high = middle;
        }
    }
    HOLD(layouts, input->sequences[low].sample == sample);
    return (uint32_t)low;
}

/* Cumulative lengths against positions; real tokens of a set ascend in each sequence. */
static void hold_row_set(const struct layouts *layouts, const struct skrull_row_set *set)
{
    uint32_t n_tokens = 0, max_rows = 0, max_tokens = 0;

    HOLD(layouts, set->cu_rows[0] == 0 && set->cu_tokens[0] == 0);
    for (uint32_t k = 0; k < set->n_sequences; k++) {
        uint32_t begin = (uint32_t)set->cu_rows[k], end = (uint32_t)set->cu_rows[k + 1];
        uint32_t before = n_tokens;
        int32_t last = -1;

        for (uint32_t row = begin; row < end; row++) {
            if (set->position[row] == SKRULL_NO_POSITION) {
                continue;
            }
            HOLD(layouts, set->position[row] > last);
            last = set->position[row];
            n_tokens++;
        }
        HOLD(layouts, set->cu_tokens[k + 1] == (int32_t)n_tokens);
        max_rows = end - begin > max_rows ? end - begin : max_rows;
        max_tokens = n_tokens - before > max_tokens ? n_tokens - before : max_tokens;
    }
    HOLD(layouts, set->n_rows == (uint32_t)set->cu_rows[set->n_sequences]);
    HOLD(layouts, set->n_tokens == n_tokens);
    HOLD(layouts, set->max_rows == max_rows && set->max_tokens == max_tokens);
}

/* Marks the tokens that a layout holds, each with its weight. */
static void mark_tokens(const struct layouts *layouts, const struct skrull_layout *layout,
                        uint8_t *const *seen)
{
    const struct skrull_row_set *rows = &layout->rows;

    hold_row_set(layouts, rows);
    HOLD(layouts, rows->n_sequences == layout->n_sequences);
    for (uint32_t k = 0; k < layout->n_sequences; k++) {
        const struct skrull_layout_sequence *sequence = &layout->sequences[k];
        uint32_t i = find_sample(layouts, sequence->sample);
        const struct skrull_sequence *whole = &layouts->random->input.sequences[i];

        HOLD(layouts, sequence->length == whole->length && sequence->index == whole->index &&
                          sequence->dataset == whole->dataset);
        for (int32_t row = rows->cu_rows[k]; row < rows->cu_rows[k + 1]; row++) {
            int32_t position = rows->position[row];
            bool has_target = position >= 0 && (uint32_t)position + 1 < whole->length;
            float weight = has_target ? (float)sequence->loss_weight : 0.0F;

            HOLD(layouts, position < (int64_t)whole->length);
            HOLD(layouts, !memcmp(&layout->loss_weight[row], &weight, sizeof(weight)));
            if (position >= 0) {
                HOLD(layouts, !seen[i][position]);
                seen[i][position] = 1;
            }
        }
    }
}

static void hold_exactly_once(const struct layouts *layouts)
{
    const struct skrull_planner_input *input = &layouts->random->input;
    uint8_t **seen = calloc(input->n_sequences, sizeof(uint8_t *));

    assert_non_null(seen);
    for (size_t i = 0; i < input->n_sequences; i++) {
        seen[i] = calloc(input->sequences[i].length, 1);
        assert_non_null(seen[i]);
    }
    for (size_t m = 0; m < layouts->plan->n_micro_batches; m++) {
        mark_tokens(layouts, layouts->all[m], seen);
    }
    for (size_t i = 0; i < input->n_sequences; i++) {
        HOLD(layouts, !memchr(seen[i], 0, input->sequences[i].length));
        free(seen[i]);
    }
    free((void *)seen);
}

/* Ranges, token maps and the local part of one layout. */
static void hold_maps(const struct layouts *layouts, const struct skrull_layout *layout)
{
    const struct skrull_row_set *rows = &layout->rows, *local = &layout->local;
    uint32_t row = 0, n_tokens = 0;

    for (uint32_t i = 0; i < layout->n_ranges; i++) {
        const struct skrull_range *range = &layout->ranges[i];

        HOLD(layouts, range->first_row == row);
        for (uint32_t t = 0; t < range->n_rows; t++, row++) {
            bool is_token = t < range->n_tokens;

            HOLD(layouts,
                 rows->position[row] == (is_token ? (int32_t)(range->token_begin + t) : -1));
            HOLD(layouts, layout->row_token[row] == (is_token ? (int32_t)n_tokens : -1));
            if (is_token) {
                HOLD(layouts, layout->token_row[n_tokens++] == (int32_t)row);
            }
        }
    }
    HOLD(layouts, row == rows->n_rows && n_tokens == rows->n_tokens);
    hold_row_set(layouts, local);
    HOLD(layouts, layout->local_row + local->n_rows == rows->n_rows);
    for (uint32_t i = 0; i < local->n_rows; i++) {
        HOLD(layouts, local->position[i] == rows->position[layout->local_row + i]);
    }
    for (uint32_t k = 0; k < local->n_sequences; k++) {
        uint32_t i = layout->n_sequences - local->n_sequences + k;

        HOLD(layouts, layout->sequences[i].length ==
                          (uint32_t)(local->cu_tokens[k + 1] - local->cu_tokens[k]));
    }
}

/* What two ranks say of one block. */
static void hold_same_block(const struct layouts *layouts, const struct skrull_layout_group *a,
                            const struct skrull_layout_group *b, uint32_t member)
{
    const struct skrull_row_set *x = &a->blocks[member], *y = &b->blocks[member];
    size_t n_cu = (size_t)x->n_sequences + 1;

    HOLD(layouts, x->n_sequences == y->n_sequences && x->n_rows == y->n_rows);
    HOLD(layouts, x->max_rows == y->max_rows && x->max_tokens == y->max_tokens);
    HOLD(layouts, !memcmp(x->cu_rows, y->cu_rows, n_cu * sizeof(int32_t)));
    HOLD(layouts, !memcmp(x->cu_tokens, y->cu_tokens, n_cu * sizeof(int32_t)));
    HOLD(layouts, !memcmp(x->position, y->position, x->n_rows * sizeof(int32_t)));
    HOLD(layouts, a->n_ranges == b->n_ranges);
    for (uint32_t i = 0; i < a->n_ranges; i++) {
        const struct skrull_range *p = &a->ranges[(size_t)member * a->n_ranges + i];
        const struct skrull_range *q = &b->ranges[(size_t)member * b->n_ranges + i];

        HOLD(layouts, p->token_begin == q->token_begin && p->n_tokens == q->n_tokens);
        HOLD(layouts, p->first_row == q->first_row && p->n_rows == q->n_rows);
        HOLD(layouts, p->i_sequence - a->first_sequence == q->i_sequence - b->first_sequence);
    }
}

/* A rank's own block is what lies in its packed buffer. */
static void hold_own_block(const struct layouts *layouts, const struct skrull_layout *layout,
                           const struct skrull_layout_group *group)
{
    const struct skrull_row_set *own = &group->blocks[group->member];

    hold_row_set(layouts, own);
    for (uint32_t i = 0; i < own->n_rows; i++) {
        HOLD(layouts, own->position[i] == layout->rows.position[group->first_row + i]);
    }
    for (uint32_t k = 0; k <= own->n_sequences; k++) {
        HOLD(layouts, own->cu_rows[k] + (int32_t)group->first_row ==
                          layout->rows.cu_rows[group->first_sequence + k]);
    }
}

/* Keys by token and the gathered buffer by member are two orders of the same rows. */
static void hold_keys(const struct layouts *layouts, const struct skrull_layout *layout,
                      const struct skrull_layout_group *group)
{
    uint32_t block_rows = group->blocks[0].n_rows;

    hold_row_set(layouts, &group->keys);
    HOLD(layouts, group->keys.n_rows == group->size * block_rows);
    for (uint32_t k = 0; k < group->keys.n_sequences; k++) {
        int32_t begin = group->keys.cu_rows[k], end = group->keys.cu_rows[k + 1];
        uint32_t length = layout->sequences[group->first_sequence + k].length;

        for (int32_t key = begin; key < end; key++) {
            uint32_t row = (uint32_t)group->gathered_row[key];
            const struct skrull_row_set *block = &group->blocks[row / block_rows];
            int32_t position = group->keys.position[key];

            HOLD(layouts, row < group->keys.n_rows && group->key_row[row] == key);
            HOLD(layouts, block->position[row % block_rows] == position);
            HOLD(layouts, block->cu_rows[k] <= (int32_t)(row % block_rows) &&
                              (int32_t)(row % block_rows) < block->cu_rows[k + 1]);
            HOLD(layouts, position == ((uint32_t)(key - begin) < length ? key - begin : -1));
        }
    }
}

/* The group that `rank` has of the same size in the same micro-batch. */
static const struct skrull_layout_group *peer_group(const struct layouts *layouts, uint32_t rank,
                                                    const struct skrull_layout *layout,
                                                    const struct skrull_layout_group *group,
                                                    const struct skrull_layout **ret_peer)
{
    const struct skrull_layout *peer = layout_of(layouts, rank, layout->i_micro_batch);
    bool has_group = false;

    for (uint32_t g = 0; g < peer->n_groups; g++) {
        if (peer->groups[g].size == group->size) {
            *ret_peer = peer;
            return &peer->groups[g];
        }
    }
    HOLD(layouts, has_group);
    return NULL;
}

static void hold_ring(const struct layouts *layouts, const struct skrull_layout_group *group,
                      const struct skrull_layout_group *previous)
{
    uint64_t held = 0;

    HOLD(layouts, group->previous == previous->first_rank + previous->member);
    HOLD(layouts, previous->next == group->first_rank + group->member);
    HOLD(layouts, group->ring[0].held == group->member);
    for (uint32_t s = 0; s < group->size; s++) {
        held |= UINT64_C(1) << group->ring[s].held;
        HOLD(layouts, group->ring[s].incoming == previous->ring[s].held);
        HOLD(layouts, s + 1 == group->size || group->ring[s + 1].held == group->ring[s].incoming);
    }
    /* Everyone's keys were here, and the last gradients to come are those of its own. */
    HOLD(layouts, held == UINT64_MAX >> (64 - group->size));
    HOLD(layouts, group->ring[group->size - 1].incoming == group->member);
}

static void hold_groups(const struct layouts *layouts, const struct skrull_layout *layout)
{
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        const struct skrull_layout_group *group = &layout->groups[g];

        HOLD(layouts, g == 0 || layout->groups[g - 1].size < group->size);
        HOLD(layouts, group->size > 1 && group->first_rank + group->member == layout->data_rank);
        hold_own_block(layouts, layout, group);
        hold_keys(layouts, layout, group);
        for (uint32_t m = 0; m < group->size; m++) {
            const struct skrull_layout *peer;
            const struct skrull_layout_group *other =
                peer_group(layouts, group->first_rank + m, layout, group, &peer);

            if (!other) {
                return;
            }
            HOLD(layouts, other->member == m && other->first_rank == group->first_rank);
            hold_same_block(layouts, group, other, m);
            hold_same_block(layouts, group, other, group->member);
            HOLD(layouts, group->blocks[m].n_rows == group->blocks[0].n_rows);
            for (uint32_t k = 0; k < group->keys.n_sequences; k++) {
                HOLD(layouts, layout->sequences[group->first_sequence + k].sample ==
                                  peer->sequences[other->first_sequence + k].sample);
            }
            if (group->first_rank + m == group->previous) {
                hold_ring(layouts, group, other);
            }
        }
    }
}

/* Where a rank is in its exchanges. */
struct cursor {
    uint32_t i_micro_batch, i_group;
};

/* The group that the rank waits in, NULL: it has ended. */
static const struct skrull_layout_group *waits_in(const struct layouts *layouts, uint32_t rank,
                                                  struct cursor *cursor)
{
    while (cursor->i_micro_batch < layouts->plan->ranks[rank].n_micro_batches) {
        const struct skrull_layout *layout = layout_of(layouts, rank, cursor->i_micro_batch);

        if (cursor->i_group < layout->n_groups) {
            return &layout->groups[cursor->i_group];
        }
        cursor->i_micro_batch++;
        cursor->i_group = 0;
    }
    return NULL;
}

/* Do all members of the group wait in it, in the same micro-batch? */
static bool all_wait(const struct layouts *layouts, struct cursor *cursors,
                     const struct skrull_layout_group *group, uint32_t i_micro_batch)
{
    for (uint32_t m = 0; m < group->size; m++) {
        uint32_t rank = group->first_rank + m;
        const struct skrull_layout_group *other = waits_in(layouts, rank, &cursors[rank]);

        if (!other || other->size != group->size || cursors[rank].i_micro_batch != i_micro_batch) {
            return false;
        }
    }
    return true;
}

/* Exchanges block until all members came: every rank must get to its end. */
static void hold_no_deadlock(const struct layouts *layouts)
{
    struct cursor cursors[CASE_MAX_RANKS] = {0};
    uint32_t n_ranks = (uint32_t)layouts->plan->n_ranks;
    bool has_moved = true, has_ended = false;

    while (has_moved && !has_ended) {
        has_moved = false;
        has_ended = true;
        for (uint32_t rank = 0; rank < n_ranks; rank++) {
            const struct skrull_layout_group *group = waits_in(layouts, rank, &cursors[rank]);

            if (!group) {
                continue;
            }
            has_ended = false;
            if (all_wait(layouts, cursors, group, cursors[rank].i_micro_batch)) {
                has_moved = true;
                for (uint32_t m = 0; m < group->size; m++) {
                    cursors[group->first_rank + m].i_group++;
                }
            }
        }
    }
    HOLD(layouts, has_ended);
}

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Limits are the largest of what was built. */
static void hold_limits(const struct layouts *layouts, uint32_t rank)
{
    const struct skrull_rank *of = &layouts->plan->ranks[rank];
    struct skrull_layout_limits is, should = {0};

    assert_int_equal(skrull_layout_measure(layouts->plan, rank, &is, NULL), 0);
    for (uint32_t m = 0; m < of->n_micro_batches; m++) {
        const struct skrull_layout *layout = layout_of(layouts, rank, m);
        uint32_t distributed = 0, gathered = 0;

        for (uint32_t g = 0; g < layout->n_groups; g++) {
            const struct skrull_layout_group *group = &layout->groups[g];

            should.block_rows = most(should.block_rows, group->blocks[0].n_rows);
            should.gathered_rows = most(should.gathered_rows, group->keys.n_rows);
            should.group_size = most(should.group_size, group->size);
            distributed += group->blocks[0].n_rows;
            gathered += group->keys.n_rows;
        }
        should.rows = most(should.rows, layout->rows.n_rows);
        should.tokens = most(should.tokens, layout->rows.n_tokens);
        should.local_rows = most(should.local_rows, layout->local.n_rows);
        should.distributed_rows = most(should.distributed_rows, distributed);
        should.distributed_gathered = most(should.distributed_gathered, gathered);
        should.sequences = most(should.sequences, layout->n_sequences);
        should.groups = most(should.groups, layout->n_groups);
    }
    HOLD(layouts, !memcmp(&is, &should, sizeof(is)));
}

static void hold_all(struct layouts *layouts)
{
    const struct skrull_plan *plan = layouts->plan;

    make(layouts);
    for (size_t i = 0; i < plan->n_micro_batches; i++) {
        HOLD(layouts, layouts->all[i]->dummy == (layouts->all[i]->rows.n_rows == 0));
        hold_maps(layouts, layouts->all[i]);
        hold_groups(layouts, layouts->all[i]);
    }
    hold_exactly_once(layouts);
    hold_no_deadlock(layouts);
    for (uint32_t rank = 0; rank < plan->n_ranks; rank++) {
        hold_limits(layouts, rank);
    }
    for (size_t i = 0; i < plan->n_micro_batches; i++) {
        skrull_layout_free(layouts->all[i]);
    }
    free((void *)layouts->all);
}

static void test_layouts__hold_together_for_every_policy(void **state)
{
    (void)state;
    for (uint64_t round = rounds.first; round < rounds.end; round++) {
        for (const char *const *policy = skrull_planner_policies(); *policy; policy++) {
            struct random_case *random = random_case_new(&rounds, round, *policy);
            struct layouts layouts = {.random = random};
            struct skrull_plan *plan = NULL;
            struct skrull_error err = {0};

            if (skrull_planner_run(&random->input, &plan, &err)) {
                random_case_print(random);
                fail_msg("%s", err.message);
            }
            layouts.plan = plan;
            hold_all(&layouts);
            skrull_plan_free(plan);
            random_case_free(random);
        }
    }
}

#define MAX_MICRO_BATCHES 4

/* Where a scattered sequence goes. */
struct spot {
    uint32_t i_sequence, i_micro_batch, group_first, group_size;
};

/* Larger groups first, then samples ascending: i_sequence ascends with them. */
static int compare_spots(const void *a, const void *b)
{
    const struct spot *x = a, *y = b;

    if (x->group_size != y->group_size) {
        return x->group_size < y->group_size ? 1 : -1;
    }
    return x->i_sequence < y->i_sequence ? -1 : x->i_sequence > y->i_sequence;
}

/* Sizes of the elastic chain: prime factors of cp ascending, then those of dp. */
static uint32_t chain_of(uint32_t dp, uint32_t cp, uint32_t *sizes)
{
    uint32_t left[2] = {cp, dp}, n = 1;

    sizes[0] = 1;
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t prime = 2; left[side] > 1; prime++) {
            for (; left[side] % prime == 0; left[side] /= prime, n++) {
                sizes[n] = sizes[n - 1] * prime;
            }
        }
    }
    return n;
}

static void scatter_spots(struct random_case *random, struct spot *spots)
{
    uint32_t dp = random->input.options.dp, cp = random->input.options.cp;
    uint32_t sizes[32], n_sizes = chain_of(dp, cp, sizes);

    for (uint32_t i = 0; i < random->input.n_sequences; i++) {
        uint32_t size = sizes[random_below(&random->state, n_sizes)];

        spots[i].i_sequence = i;
        spots[i].i_micro_batch = random_below(&random->state, MAX_MICRO_BATCHES);
        spots[i].group_size = size;
        spots[i].group_first = random_below(&random->state, dp * cp / size) * size;
    }
    qsort(spots, random->input.n_sequences, sizeof(*spots), compare_spots);
}

/* Appends the segments of one rank and micro-batch. */
static void scatter_micro_batch(const struct random_case *random, const struct spot *spots,
                                struct skrull_plan *plan, uint32_t rank, uint32_t i_micro_batch)
{
    const struct skrull_planner_options *options = &random->input.options;
    struct skrull_micro_batch *micro_batch = &plan->micro_batches[plan->n_micro_batches++];

    micro_batch->first_segment = plan->n_segments;
    for (size_t i = 0; i < random->input.n_sequences; i++) {
        const struct skrull_sequence *sequence = &random->input.sequences[spots[i].i_sequence];
        struct skrull_segment *segments = &plan->segments[plan->n_segments];
        uint32_t n = skrull_slot_segments(spots[i].group_size, options->shard);

        if (spots[i].i_micro_batch != i_micro_batch ||
            rank - spots[i].group_first >= spots[i].group_size) {
            continue;
        }
        for (uint32_t k = 0; k < n; k++) {
            segments[k] = (struct skrull_segment){.sample = sequence->sample,
                                                  .index = sequence->index,
                                                  .dataset = sequence->dataset,
                                                  .sequence_length = sequence->length,
                                                  .group_first = spots[i].group_first,
                                                  .group_size = spots[i].group_size,
                                                  .loss_weight = 1.0 / (spots[i].i_sequence + 1)};
        }
        skrull_slot_cut(sequence->length, spots[i].group_size, rank - spots[i].group_first,
                        options->align, options->shard, segments);
        plan->n_segments += n;
    }
    micro_batch->n_segments = (uint32_t)(plan->n_segments - micro_batch->first_segment);
    micro_batch->dummy = micro_batch->n_segments == 0;
}

static struct skrull_plan *scatter(struct random_case *random)
{
    uint32_t n_ranks = random->input.options.dp * random->input.options.cp;
    struct arena *arena = arena_new(SIZE_MAX);
    struct skrull_plan *plan = arena ? ARENA_NEW(arena, struct skrull_plan) : NULL;
    struct spot *spots = calloc(random->input.n_sequences, sizeof(*spots));

    if (!plan || !spots) {
        fail_msg("out of memory");
        return NULL;
    }
    plan->arena = arena;
    plan->dp = random->input.options.dp;
    plan->cp = random->input.options.cp;
    plan->n_ranks = n_ranks;
    plan->ranks = ARENA_ARRAY(arena, struct skrull_rank, n_ranks);
    plan->micro_batches =
        ARENA_ARRAY(arena, struct skrull_micro_batch, (size_t)n_ranks * MAX_MICRO_BATCHES);
    plan->segments =
        ARENA_ARRAY(arena, struct skrull_segment, 2 * (size_t)n_ranks * random->input.n_sequences);
    assert_true(plan->ranks && plan->micro_batches && plan->segments);
    scatter_spots(random, spots);
    for (uint32_t rank = 0; rank < n_ranks; rank++) {
        plan->ranks[rank].data_rank = rank;
        plan->ranks[rank].n_micro_batches = MAX_MICRO_BATCHES;
        plan->ranks[rank].first_micro_batch = plan->n_micro_batches;
        for (uint32_t m = 0; m < MAX_MICRO_BATCHES; m++) {
            scatter_micro_batch(random, spots, plan, rank, m);
        }
    }
    free(spots);
    return plan;
}

static void test_layouts__hold_together_on_scattered_groups(void **state)
{
    (void)state;
    for (uint64_t round = rounds.first; round < rounds.end; round++) {
        struct random_case *random = random_case_new(&rounds, round, "skrull");
        struct skrull_plan *plan = scatter(random);
        struct layouts layouts = {.random = random, .plan = plan};

        hold_all(&layouts);
        skrull_plan_free(plan);
        random_case_free(random);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts__hold_together_for_every_policy),
        cmocka_unit_test(test_layouts__hold_together_on_scattered_groups),
    };

    rounds = random_rounds_get(argc > 1 ? strtoull(argv[1], NULL, 10) : 100);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

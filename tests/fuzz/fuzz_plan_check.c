/*
 * Bytes as a plan that anybody may have made: one of the planner's with fields overwritten, or
 * arrays of any content. plan_check looks at it without crashing; what it finds sound can be timed.
 */
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "fuzz/planner_input.h"
#include "plan_digest.h"
#include "plan_rules.h"

#define HEAD_BYTES ((size_t)64) /* options and lengths; the patches follow */
#define MAX_ITEMS 200           /* of each array, in a plan of nothing but bytes */

static void count_fault(void *arg, const char *message)
{
    unsigned *n_faults = arg;

    fuzz_check(message && message[0], "a fault has a message");
    ++*n_faults;
}

static void patch_head(struct skrull_plan *plan, uint8_t field, uint64_t value)
{
    switch (field % 10) {
    case 0:
        plan->n_ranks = value % (plan->n_ranks + 1); /* arrays only get shorter */
        break;
    case 1:
        plan->n_micro_batches = value % (plan->n_micro_batches + 1);
        break;
    case 2:
        plan->n_segments = value % (plan->n_segments + 1);
        break;
    case 3:
        plan->dp = (uint32_t)value;
        break;
    case 4:
        plan->cp = (uint32_t)value;
        break;
    case 5:
        plan->totals.sequences = value;
        break;
    case 6:
        plan->totals.tokens = value;
        break;
    case 7:
        plan->totals.loss_tokens = value;
        break;
    case 8:
        plan->estimate.bound_ns = (int64_t)value;
        break;
    default:
        plan->estimate.iteration_ns = (int64_t)value;
        break;
    }
}

static void patch_rank(struct skrull_rank *rank, uint8_t field, uint64_t value)
{
    switch (field % 4) {
    case 0:
        rank->data_rank = (uint32_t)value;
        break;
    case 1:
        rank->n_micro_batches = (uint32_t)value;
        break;
    case 2:
        rank->first_micro_batch = value;
        break;
    default:
        memcpy(rank->digest, &value, sizeof(value));
        break;
    }
}

static void patch_micro_batch(struct skrull_micro_batch *micro_batch, uint8_t field, uint64_t value)
{
    switch (field % 5) {
    case 0:
        micro_batch->first_segment = value;
        break;
    case 1:
        micro_batch->n_segments = (uint32_t)value;
        break;
    case 2:
        micro_batch->dummy = value & 1;
        break;
    case 3:
        micro_batch->tokens = value;
        break;
    default:
        micro_batch->padded_tokens = value;
        break;
    }
}

static void patch_segment(struct skrull_segment *segment, uint8_t field, uint64_t value)
{
    uint32_t *const numbers[] = {
        &segment->dataset,    &segment->sequence_length, &segment->token_begin,
        &segment->token_end,  &segment->padded_tokens,   &segment->group_first,
        &segment->group_size,
    };
    const size_t n_numbers = sizeof(numbers) / sizeof(numbers[0]);

    if (field % 10 < n_numbers) {
        *numbers[field % 10] = (uint32_t)value;
    } else if (field % 10 == n_numbers) {
        segment->sample = value;
    } else if (field % 10 == n_numbers + 1) {
        segment->index = value;
    } else {
        memcpy(&segment->loss_weight, &value, sizeof(value));
    }
}

/* Would the patch change where arrays begin and how long they are? */
static bool is_of_shape(uint8_t what, uint8_t field)
{
    return (what % 4 == 0 && field % 10 < 3) ||
           (what % 4 == 1 && (field % 4 == 1 || field % 4 == 2)) ||
           (what % 4 == 2 && field % 5 < 2);
}

/* One patch: which array, which item, which field, and a value of 1, 2, 4 or 8 bytes. */
static void patch(struct fuzz_input *bytes, struct skrull_plan *plan, bool keep_shape)
{
    const uint8_t what = fuzz_u8(bytes), field = fuzz_u8(bytes);
    const uint16_t item = fuzz_u16(bytes);
    const uint64_t value = what / 64 == 0   ? fuzz_u8(bytes)
                           : what / 64 == 1 ? fuzz_u16(bytes)
                           : what / 64 == 2 ? fuzz_u32(bytes)
                                            : fuzz_u64(bytes);

    if (keep_shape && is_of_shape(what, field)) {
        return;
    }
    if (what % 4 == 0) {
        patch_head(plan, field, value);
    } else if (what % 4 == 1 && plan->n_ranks > 0) {
        patch_rank(&plan->ranks[item % plan->n_ranks], field, value);
    } else if (what % 4 == 2 && plan->n_micro_batches > 0) {
        patch_micro_batch(&plan->micro_batches[item % plan->n_micro_batches], field, value);
    } else if (what % 4 == 3 && plan->n_segments > 0) {
        patch_segment(&plan->segments[item % plan->n_segments], field, value);
    }
}

/* Arrays of zeros, as long as the bytes say; patches fill them. */
static struct skrull_plan *blank_plan(struct fuzz_input *bytes)
{
    struct arena *arena = arena_new((size_t)1 << 20);
    struct skrull_plan *plan = ARENA_NEW(arena, struct skrull_plan);

    plan->arena = arena;
    plan->job = plan->uid = plan->policy = "";
    plan->dp = fuzz_u8(bytes);
    plan->cp = fuzz_u8(bytes);
    plan->n_ranks = fuzz_u8(bytes) % MAX_ITEMS;
    plan->n_micro_batches = fuzz_u8(bytes) % MAX_ITEMS;
    plan->n_segments = fuzz_u8(bytes) % MAX_ITEMS;
    plan->ranks = ARENA_ARRAY(arena, struct skrull_rank, plan->n_ranks);
    plan->micro_batches = ARENA_ARRAY(arena, struct skrull_micro_batch, plan->n_micro_batches);
    plan->segments = ARENA_ARRAY(arena, struct skrull_segment, plan->n_segments);
    fuzz_check(plan->ranks && plan->micro_batches && plan->segments, "there is memory");
    return plan;
}

/* Holds the plan against the options; what is sound can be timed. */
static void judge(const struct planner_input *planner, struct skrull_plan *plan)
{
    struct plan_rules rules;
    unsigned n_faults = 0;
    int rc;

    if (plan_rules_init(&planner->input.options, &rules)) {
        return;
    }
    rc = plan_check(plan, &rules.rules, count_fault, &n_faults);
    fuzz_check(rc == 0 || rc == PLAN_CHECK_UNSOUND, "a plan is sound or not");
    fuzz_check((rc == 0) == (n_faults == 0) && n_faults <= PLAN_CHECK_MAX_FAULTS,
               "an unsound plan has faults, not too many");
    if (rc == 0) {
        rc = skrull_planner_evaluate(&rules.options, planner->cost, false, plan, NULL);
        fuzz_check(rc == 0 || rc == SKRULL_ERR_INVALID_ARGUMENT, "a sound plan can be timed");
    }
}

/* The first `n` bytes as an input of their own. */
static struct fuzz_input split(struct fuzz_input *bytes, size_t n)
{
    const struct fuzz_input head = {.data = bytes->data, .size = n < bytes->size ? n : bytes->size};

    bytes->data += head.size;
    bytes->size -= head.size;
    return head;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input bytes = {.data = data, .size = size};
    const uint8_t mode =
        fuzz_u8(&bytes) % 3; /* 0: patched, 1: patched and hashed again, 2: blank */
    struct fuzz_input head = split(&bytes, HEAD_BYTES);
    struct skrull_plan *plan = NULL;
    struct planner_input planner;

    planner_input_read(&head, &planner);
    if (mode == 2) {
        plan = blank_plan(&bytes);
    } else if (planner_input_is_small(&planner)) {
        (void)skrull_planner_run(&planner.input, &plan, NULL);
    }
    while (plan && bytes.size > 0) {
        patch(&bytes, plan, mode == 1);
    }
    if (plan && mode == 1) {
        (void)plan_digest_all(plan); /* whoever forges a plan can hash, too */
    }
    if (plan) {
        judge(&planner, plan);
    }
    skrull_plan_free(plan);
    skrull_cost_model_free(planner.cost);
    return 0;
}

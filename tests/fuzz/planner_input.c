/* Bytes to options and lengths. Zero bytes are defaults, so that short inputs are sound ones. */
#include "fuzz/planner_input.h"

static void read_options(struct fuzz_input *bytes, struct skrull_planner_options *options)
{
    static const char *const unknown[] = {"magic", ""};
    const char *const *policies = skrull_planner_policies();
    const uint8_t policy = fuzz_u8(bytes);
    uint32_t n_policies = 0;

    while (policies[n_policies]) {
        n_policies++;
    }
    options->policy = policy >= 250 ? unknown[policy % 2] : policies[policy % n_policies];
    options->dp = fuzz_u16(bytes);
    options->cp = fuzz_u16(bytes);
    options->bucket_tokens = fuzz_u32(bytes);
    options->align = fuzz_u16(bytes);
    options->cp_mode = fuzz_u8(bytes) % 4;
    options->shard = fuzz_u8(bytes) % 4;
    options->loss = fuzz_u8(bytes) % 5;
    options->equal_micro_batches = fuzz_u8(bytes) % 2;
    options->min_degree = fuzz_u16(bytes);
    options->max_degree = fuzz_u16(bytes);
    options->ranks_per_node = fuzz_u16(bytes);
    options->micro_batches = fuzz_u16(bytes);
    options->micro_batch_multiple = fuzz_u8(bytes);
    options->micro_batch_min = fuzz_u8(bytes);
    options->micro_batch_order = fuzz_u8(bytes) % 5;
    options->mix = fuzz_u8(bytes) % 4;
    options->effort = 1u + fuzz_u8(bytes); /* few steps: many inputs */
}

/* One sequence: a byte of kind, then a length of 1, 2 or 4 bytes. */
static void read_sequence(struct fuzz_input *bytes, uint64_t sample,
                          struct skrull_sequence *sequence)
{
    const uint8_t kind = fuzz_u8(bytes);

    sequence->sample = kind == 255 ? fuzz_u64(bytes) : sample;
    sequence->index = sample;
    sequence->dataset = kind / 64;
    sequence->length = kind % 4 == 0   ? fuzz_u8(bytes)
                       : kind % 4 == 1 ? fuzz_u16(bytes)
                       : kind % 4 == 2 ? fuzz_u32(bytes)
                                       : 1u + fuzz_u8(bytes);
    sequence->loss_tokens = kind / 4 % 4 == 0   ? sequence->length
                            : kind / 4 % 4 == 1 ? 0
                            : kind / 4 % 4 == 2 ? sequence->length / 2
                                                : fuzz_u32(bytes);
}

void planner_input_read(struct fuzz_input *bytes, struct planner_input *ret)
{
    static const char *const presets[] = {"qwen2.5-0.5b", "qwen2.5-7b"};
    static const char *const profiles[] = {"paper-h100", "h100-nodes"};
    const uint8_t machine = fuzz_u8(bytes);
    struct skrull_cost_options cost = {.preset = presets[machine % 2],
                                       .profile = profiles[machine / 2 % 2],
                                       .tp = machine / 4 % 8,
                                       .pp = machine / 32};
    size_t n = 0;

    *ret = (struct planner_input){.input = {.sequences = ret->sequences, .job = "fuzz"}};
    read_options(bytes, &ret->input.options);
    cost.ranks = ret->input.options.dp * ret->input.options.cp;
    cost.ranks_per_node = ret->input.options.ranks_per_node;
    fuzz_check(skrull_cost_model_new(&cost, &ret->cost, NULL) == 0, "there is a cost model");
    ret->input.cost = ret->cost;
    while (n < PLANNER_INPUT_MAX_SEQUENCES && bytes->size > 0) {
        read_sequence(bytes, n, &ret->sequences[n]);
        n++;
    }
    ret->input.n_sequences = n;
}

bool planner_input_is_small(const struct planner_input *planner)
{
    const struct skrull_planner_options *options = &planner->input.options;

    return (uint64_t)options->dp * options->cp <= PLANNER_INPUT_MAX_RANKS &&
           options->micro_batches <= PLANNER_INPUT_MAX_MICRO_BATCHES;
}

/*
 * Bytes as options and lengths. What the planner takes becomes a plan that plan_check finds sound,
 * the same twice; what it does not take is INVALID_ARGUMENT with a message.
 */
#include <string.h>

#include "fuzz/planner_input.h"
#include "plan_rules.h"

static void print_fault(void *arg, const char *message)
{
    (void)arg;
    fuzz_check(false, message);
}

/* Rows are samples; only the lengths of sound sequences are asked for. */
static void look_up(void *arg, uint32_t dataset, uint64_t row, struct plan_check_sequence *ret)
{
    const struct planner_input *planner = arg;

    *ret = (struct plan_check_sequence){0};
    if (row < planner->input.n_sequences && planner->sequences[row].dataset == dataset) {
        ret->length = planner->sequences[row].length;
        ret->loss_tokens = planner->sequences[row].loss_tokens;
    }
}

static void check_plan(struct planner_input *planner, const struct skrull_plan *plan)
{
    struct plan_rules rules;

    fuzz_check(plan_rules_init(&planner->input.options, &rules) == 0, "the options are right");
    rules.rules.n_sequences = planner->input.n_sequences;
    rules.rules.lookup = look_up;
    rules.rules.arg = planner;
    fuzz_check(plan_check(plan, &rules.rules, print_fault, NULL) == 0, "the plan is sound");
    fuzz_check(plan->estimate.bound_ns <= plan->estimate.iteration_ns, "nothing beats the bound");
}

static void check_refusal(const struct planner_input *planner, int rc,
                          const struct skrull_error *err)
{
    const bool is_options = skrull_planner_check_options(&planner->input.options, NULL) != 0;

    fuzz_check(rc == SKRULL_ERR_INVALID_ARGUMENT, "an input that is refused is wrong");
    fuzz_check(err->message[0] != 0, "a refusal has a message");
    if (!is_options && planner->input.n_sequences > 0 &&
        planner->input.options.micro_batches == 0) {
        const uint64_t longest = skrull_planner_longest(&planner->input.options);
        bool is_sound = true;

        for (size_t i = 0; i < planner->input.n_sequences; i++) {
            const struct skrull_sequence *sequence = &planner->sequences[i];

            is_sound &= sequence->length > 0 && sequence->length <= longest &&
                        sequence->length < 1u << 24 && sequence->loss_tokens <= sequence->length &&
                        (i == 0 || sequence->sample > sequence[-1].sample);
        }
        fuzz_check(!is_sound, "a sound batch is planned");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input bytes = {.data = data, .size = size};
    struct skrull_plan *plan = NULL, *again = NULL;
    struct skrull_error err = {0};
    struct planner_input planner;
    int rc;

    planner_input_read(&bytes, &planner);
    rc = skrull_planner_check_options(&planner.input.options, &err);
    fuzz_check(rc == 0 || rc == SKRULL_ERR_INVALID_ARGUMENT, "options are right or wrong");
    (void)skrull_planner_longest(&planner.input.options);
    if (rc != 0 || planner_input_is_small(&planner)) {
        rc = skrull_planner_run(&planner.input, &plan, &err);
        fuzz_check((rc == 0) == (plan != NULL), "there is a plan, or an error");
        if (plan) {
            check_plan(&planner, plan);
            fuzz_check(skrull_planner_run(&planner.input, &again, &err) == 0, "again");
            fuzz_check(memcmp(plan->digest, again->digest, SKRULL_DIGEST_SIZE) == 0, "the same");
        } else {
            check_refusal(&planner, rc, &err);
        }
    }
    skrull_plan_free(again);
    skrull_plan_free(plan);
    skrull_cost_model_free(planner.cost);
    return 0;
}

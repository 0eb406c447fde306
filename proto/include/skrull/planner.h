/*
 * The planner as a library: lengths in, plan out. Pure: no I/O, no clock, no globals, the same bytes
 * on every machine. Any number of threads may plan at once, also with one model.
 */
#pragma once

#include <skrull/error.h>
#include <skrull/plan.h>
#include <skrull/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One sequence of the batch. */
struct skrull_sequence {
    uint64_t sample; /* ascending and unique in the batch */
    uint64_t index;  /* row in its data set */
    uint32_t dataset;
    uint32_t length;      /* tokens, at least 1 */
    uint32_t loss_tokens; /* at most length */
};

/* Grid and limits; the names of the job file. 0 means the default wherever the job file has one. */
struct skrull_planner_options {
    uint32_t dp, cp;
    enum skrull_cp_mode cp_mode;
    uint32_t min_degree, max_degree, ranks_per_node;
    uint32_t bucket_tokens, align; /* bucket_tokens below 2^31 */
    enum skrull_shard shard;
    bool equal_micro_batches;
    /* micro_batches: of every rank, dummies included, which makes counts equal; the other two are for
     * equal counts only. A policy must not use numbers from micro_batches on if it can avoid it: what
     * needs more is refused after it. */
    uint32_t micro_batches, micro_batch_multiple, micro_batch_min;
    enum skrull_micro_batch_order micro_batch_order; /* applied after every policy */
    enum skrull_mix mix;                             /* for each policy to keep */
    enum skrull_loss loss;
    const char *policy; /* a name of policies.def */
    uint64_t effort;    /* search steps of policy joint; 0: SKRULL_EFFORT_DEFAULT */
};

/* Search steps by name. More are never worse, and never depend on the machine. */
#define SKRULL_EFFORT_LOW 150
#define SKRULL_EFFORT_DEFAULT 7700
#define SKRULL_EFFORT_HIGH 250000

/* What a step costs, opaque (daemon/cost). */
struct skrull_cost_model;

struct skrull_cost_options {
    const char *preset;  /* a name of presets.def */
    const char *profile; /* a name of profiles.def, NULL: paper-h100 */
    enum skrull_flops flops;
    /*
     * Where the GPUs of groups are, for profiles that tell exchange inside a node from that across.
     * GPUs are numbered by tensor-parallel peer, then data rank (`ranks` of them, dp x cp), then
     * pipeline stage. ranks_per_node, where it is not 0, replaces the profile's nodes. tp, pp: 0 is 1.
     */
    uint32_t ranks, tp, pp, ranks_per_node;
};

/* A new cost model, freed by skrull_cost_model_free. INVALID_ARGUMENT names what is unknown and lists
 * what there is. */
SKRULL_API int skrull_cost_model_new(const struct skrull_cost_options *options,
                                     struct skrull_cost_model **ret_model, struct skrull_error *err);
SKRULL_API void skrull_cost_model_free(struct skrull_cost_model *model);

/* Cost of the optimizer step and gradient synchronisation, once an iteration, in no plan's time. */
SKRULL_API int64_t skrull_cost_step_ns(const struct skrull_cost_model *model);

struct skrull_planner_input {
    struct skrull_planner_options options;
    const struct skrull_cost_model *cost;       /* borrowed */
    const struct skrull_sequence *sequences;    /* [n_sequences], borrowed */
    size_t n_sequences;                         /* at least 1 */
    uint64_t step, epoch;                       /* copied into the plan */
    const char *job, *uid;                      /* copied into the plan; NULL is "" */
    uint32_t revision;                          /* copied into the plan */
};

/*
 * Checks `options` alone: ranges, an unknown policy ("policy: unknown policy NAME"), an empty set of
 * group sizes. Returns 0 or INVALID_ARGUMENT. skrull_planner_run checks them too.
 */
SKRULL_API int skrull_planner_check_options(const struct skrull_planner_options *options,
                                            struct skrull_error *err);

/* Tokens of the longest sequence that `options` can place (the policy's own group sizes), 0: none. */
SKRULL_API uint64_t skrull_planner_longest(const struct skrull_planner_options *options);

/*
 * Plans one batch: placement by the policy, weights, both digests, estimate and bound. The plan owns
 * its arena; free it with skrull_plan_free. INVALID_ARGUMENT: options, a sequence that fits nowhere
 * (names it and the limit), or a batch that needs more than micro_batches (names how many).
 * RESOURCE_EXHAUSTED: out of memory.
 */
SKRULL_API int skrull_planner_run(const struct skrull_planner_input *input,
                                  struct skrull_plan **ret_plan, struct skrull_error *err);

/*
 * Times a whole plan by the model of model.md and fills every estimate in it (bound included).
 * `barrier`: the paper's equation 8 instead: all CP ranks of a DP rank wait for each other after each
 * micro-batch. The plan must have passed skrull_plan_check.
 */
SKRULL_API int skrull_planner_evaluate(const struct skrull_planner_options *options,
                                       const struct skrull_cost_model *cost, bool barrier,
                                       struct skrull_plan *plan, struct skrull_error *err);

/* Names of the built policies, NULL at the end; static. */
SKRULL_API const char *const *skrull_planner_policies(void);

#ifdef __cplusplus
}
#endif

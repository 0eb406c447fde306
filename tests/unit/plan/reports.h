/* clang-format off */
/*
 * Faults that users of other length-aware batchers met, each a test of the same name, with the
 * input that showed it and the outcome that a correct planner has. Names: test_R<number>__...
 *
 * report  what went wrong there                            where it is held here
 * R1      ceil(tokens / cap) micro-batches overfill one    plan/test_reports_capacity
 * R2      balance decided, the cap only warned             plan/test_reports_capacity
 * R3      ranks differ in their micro-batch counts         plan/test_reports_counts
 * R4      a count above what a rank has left               plan/test_reports_counts
 * R5      empty bins at the end                            plan/test_reports_counts
 * R6      longer than a micro-batch "cannot happen"        plan/test_reports_capacity, job/test_job_reports
 * R7      accepted before, out of memory later             plan/test_reports_capacity
 * R9      per-rank counts 4, 4, 8, 4                       plan/test_reports_counts
 * R10     an empty micro-batch before an over-long one     plan/test_reports_counts
 * R11     ranks that are no power of two stay empty        plan/test_reports_counts
 * R12     a group that is none of the world's              plan/test_reports_counts
 * R13     lists shared, wrapped, asserted the wrong way    property/test_plans
 * R14     peers hold different plans                       plan/test_reports_content
 * R15     offsets and groups not in the plan               plan/test_reports_content
 * R16     the pack is aligned, its sequences are not       plan/test_reports_content
 * R17     7 tokens on 2 ranks handled as 6                 plan/test_reports_content
 * R18     padded and real offsets confused                 plan/test_reports_content
 * R20     capacity counted before padding                  plan/test_reports_capacity
 * R21     token counts short, or doubled, by cp            plan/test_reports_loss
 * R22     mean of means                                    plan/test_reports_loss
 * R23     packed and unpacked losses differ                plan/test_reports_loss
 * R25     a sample of the epoch is never used              job/test_job_reports
 * R28     the epoch is packed ahead, for hours             job/test_job_reports
 * R29     resumed on other ranks, samples repeat           job/test_job_reports
 * R30     packs depend on who else draws numbers           plan/test_reports_content
 * R31     no way to run the largest first                  plan/test_reports_counts, plan/test_order
 * R33     steps counted in bins                            plan/test_reports_loss
 * R34     counts that pipelines cannot run                 plan/test_reports_counts, plan/test_counts
 * R35     a shape for every pack                           plan/test_reports_capacity (align)
 * R36     balanced by work, the cap forgotten              plan/test_reports_capacity
 * R37     long ones end up together                        plan/test_reports_capacity
 * R38     imbalance that nobody reports                    plan/test_reports_counts
 * R40     attention across documents of a pack             plan/test_reports_content
 * R41     zero-length sequences                            plan/test_reports_content
 * R42     targets counted after the split                  plan/test_reports_loss
 * R43     200 and 7,900 targets a rank                     plan/test_reports_loss
 * R44     long samples vanish, the tail repeats            job/test_job_reports
 * R45     uneven counts across expert ranks                plan/test_reports_counts
 * R46     one long sequence among short ones               plan/test_reports_capacity
 * R48     settings judged late, fill unknown               plan/test_reports_capacity
 *
 * None of the planner's: R39 is the cost model's (kinds of layers), R47 asks for features, R49
 * for speed (bench_planner). R8, R19, R24, R26, R27, R32, R50 and R51 are not in the record.
 * Inputs on record that no report came with are in plan/test_reports_inputs.
 */
/* clang-format on */
#pragma once

#include <skrull/plan.h>
#include <skrull/planner.h>

#include "unit/plan/fixture.h"

#define REPORTS_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* `policy` over all that are built. */
#define REPORTS_EACH_POLICY(policy)                                                                \
    for (const char *const *policy = skrull_planner_policies(); *policy; policy++)

/* The batch, and its plan by a policy; fails the test unless plan_check finds it sound. */
struct skrull_plan *reports_plan(struct fixture *fixture, const char *policy,
                                 const uint32_t *lengths, size_t n);

/* The same of the batch that the fixture has. */
struct skrull_plan *reports_replan(struct fixture *fixture, const char *policy);

/* Expects INVALID_ARGUMENT that says each of `words` ([n_words]). */
void reports_refuse(struct fixture *fixture, const char *policy, const uint32_t *lengths, size_t n,
                    const char *const *words, size_t n_words);

/* The most micro-batches of a rank; those with work on a rank; those without. */
uint32_t reports_most_micro_batches(const struct skrull_plan *plan);
uint32_t reports_working(const struct skrull_plan *plan, uint32_t rank);
uint32_t reports_dummies(const struct skrull_plan *plan, uint32_t rank);

/* Micro-batch `m` of a rank, and its segments; both fail the test where it has none. */
const struct skrull_micro_batch *reports_micro_batch(const struct skrull_plan *plan, uint32_t rank,
                                                     uint32_t m);
const struct skrull_segment *reports_segments(const struct skrull_plan *plan, uint32_t rank,
                                              uint32_t m);

/* The first segment of a sample, on the first rank that has it. */
const struct skrull_segment *reports_find(const struct skrull_plan *plan, uint64_t sample);

/*
 * Canonical proto3 JSON (codec_json.h) of what programs print and read, in C words: for those who
 * may not see messages. Each text is malloc'd (free it), one document without a final newline;
 * indented where `is_pretty`, else on one line. RESOURCE_EXHAUSTED: out of memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <skrull/job.h>
#include <skrull/plan.h>

#include "codec_rpc.h"

/* skrull.v1.Plan: all ranks that the plan has. */
int codec_text_plan(const struct skrull_plan *plan, bool is_pretty, char **ret_text,
                    struct skrull_error *err);

/* skrull.v1.RankPlan. */
int codec_text_rank_plan(const struct skrull_plan *plan, size_t i_rank, bool is_pretty,
                         char **ret_text, struct skrull_error *err);

/* skrull.v1.Estimate. */
int codec_text_estimate(const struct skrull_estimate *estimate, bool is_pretty, char **ret_text,
                        struct skrull_error *err);

/* skrull.v1.Job. */
int codec_text_job(const struct skrull_job *job, bool is_pretty, char **ret_text,
                   struct skrull_error *err);

/* skrull.v1.ListJobsResponse. */
int codec_text_job_page(const struct rpc_job_page *page, bool is_pretty, char **ret_text,
                        struct skrull_error *err);

/* skrull.v1.IndexStats. */
int codec_text_index_stats(const struct rpc_index_stats *stats, bool is_pretty, char **ret_text,
                           struct skrull_error *err);

/* grpc.health.v1.HealthCheckResponse. */
int codec_text_health(enum rpc_health health, bool is_pretty, char **ret_text,
                      struct skrull_error *err);

/* skrull.v1.ComparisonRow. */
struct codec_text_comparison_row {
    const char *policy;
    int64_t mean_ns, p50_ns, p95_ns;
    double speedup, speedup_with_step, gap;
    int64_t planning_ns;
    const char *refused; /* "": it has figures */
};

/* skrull.v1.Comparison of `rows` ([n_rows]). */
int codec_text_comparison(const struct codec_text_comparison_row *rows, size_t n_rows,
                          bool is_pretty, char **ret_text, struct skrull_error *err);

/* Reads a Plan document ([len] bytes). INVALID_ARGUMENT names the place. */
int codec_text_plan_parse(const char *text, size_t len, struct skrull_plan **ret_plan,
                          struct skrull_error *err);

/* Where a verb's plan, and the job that it is held against, come from. Each function says what
 * fails and returns an exit status. */
#pragma once

#include <skrull/plan.h>

#include "ctl.h"

struct arena;
struct job;
struct skrull_job;

/* The plan of a file as -o json printed it; "-" is standard input. */
int plan_source_read(const struct ctl *ctl, const char *path, struct skrull_plan **ret_plan);

/* The plan that the daemon has of operand 0 and --step; of --rank where that is given. */
int plan_source_fetch(struct ctl *ctl, struct skrull_plan **ret_plan);

/* One of both: -f, or operand 0 with --step. CTL_USAGE where it is neither or both. */
int plan_source_either(struct ctl *ctl, struct skrull_plan **ret_plan);

/* A job file that was read. */
struct plan_source_job {
    struct arena *arena; /* owned: holds all of it */
    struct skrull_job *spec;
    const char *folder; /* where the file lies */
};

/* Reads a job file and checks all that needs no index, policy, preset and profile too; "-" is
 * standard input. Free by plan_source_job_deinit. */
int plan_source_read_job(const struct ctl *ctl, const char *path, struct plan_source_job *ret);
void plan_source_job_deinit(struct plan_source_job *job);

/* The job of a job file, opened on this machine: index paths are absolute, or relative to
 * --data-root, by default the file's folder. */
int plan_source_open_job(const struct ctl *ctl, const char *path, struct job **ret_job);

/* The same of a job that was read, or that a daemon gave; relative to --data-root, by default
 * `folder`. `err` says why not; the code is returned, nothing is printed. */
int plan_source_open_spec(const struct ctl *ctl, const struct skrull_job *spec, const char *folder,
                          struct job **ret_job, struct skrull_error *err);

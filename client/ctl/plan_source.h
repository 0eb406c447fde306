/* Where a verb's plan, and the job that it is held against, come from. Each function says what
 * fails and returns an exit status. */
#pragma once

#include <skrull/plan.h>

#include "ctl.h"

struct job;

/* The plan of a file as -o json printed it; "-" is standard input. */
int plan_source_read(const struct ctl *ctl, const char *path, struct skrull_plan **ret_plan);

/* The plan that the daemon has of operand 0 and --step; of --rank where that is given. */
int plan_source_fetch(struct ctl *ctl, struct skrull_plan **ret_plan);

/* One of both: -f, or operand 0 with --step. CTL_USAGE where it is neither or both. */
int plan_source_either(struct ctl *ctl, struct skrull_plan **ret_plan);

/* The job of a job file, opened on this machine: index paths are absolute, or relative to
 * --data-root, by default the file's folder. */
int plan_source_open_job(const struct ctl *ctl, const char *path, struct job **ret_job);

/* The same of a job that a daemon gave; relative to --data-root, by default here. `err` says why
 * not; the code is returned, nothing is printed. */
int plan_source_open_spec(const struct ctl *ctl, const struct skrull_job *spec,
                          struct job **ret_job, struct skrull_error *err);

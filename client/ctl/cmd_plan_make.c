/* plan make: plans a step in this process. How long that took is no part of a plan; it goes to
 * standard error. */
#include <inttypes.h>
#include <stdio.h>

#include "cmd.h"
#include "ctl.h"
#include "job/job.h"
#include "plan_print.h"
#include "plan_source.h"

int cmd_plan_make(struct ctl *ctl)
{
    struct skrull_plan *plan;
    struct skrull_error err;
    struct job *job;
    int64_t planning_ns;
    uint64_t step;
    int status = ctl_number(ctl, "--step", UINT64_MAX, 0, &step);

    if (status == CTL_DONE) {
        status = plan_source_open_job(ctl, ctl_text(ctl, "-f"), &job);
    }
    if (status != CTL_DONE) {
        return status;
    }
    if (job_plan(job, step, &plan, &planning_ns, &err) < 0) {
        job_unref(job);
        return ctl_fail(ctl, &err);
    }
    if (ctl_has(ctl, "--timing")) {
        (void)fprintf(stderr, "planning_ns=%" PRId64 "\n", planning_ns);
    }
    status = plan_print(ctl, plan);
    skrull_plan_free(plan);
    job_unref(job);
    return status;
}

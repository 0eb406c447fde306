/* plan get: the daemon's plan of a step. */
#include "cmd.h"
#include "ctl.h"
#include "plan_print.h"
#include "plan_source.h"

int cmd_plan_get(struct ctl *ctl)
{
    struct skrull_plan *plan;
    int status = plan_source_fetch(ctl, &plan);

    if (status != CTL_DONE) {
        return status;
    }
    status = plan_print(ctl, plan);
    skrull_plan_free(plan);
    return status;
}

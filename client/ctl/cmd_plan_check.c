/*
 * plan check: holds a plan against every rule and against its job, with the job's indexes where
 * they can be read here; then times it anew by the model, which its own estimates must agree with.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skrull/planner.h>

#include "cmd.h"
#include "codec_text.h"
#include "ctl.h"
#include "estimate_check.h"
#include "job/job.h"
#include "plan_check.h"
#include "plan_print.h"
#include "plan_source.h"

struct faults {
    const struct ctl *ctl;
    size_t n_faults;
};

static void say_fault(void *arg, const char *message)
{
    struct faults *faults = arg;

    faults->n_faults++;
    (void)fprintf(stderr, "skrullctl: plan check: %s\n", message);
}

/* Times a sound plan by the job's model, which its estimates are held against. */
static int evaluate(const struct ctl *ctl, const struct skrull_job *spec, struct skrull_plan *plan,
                    struct faults *faults, struct skrull_error *err)
{
    struct skrull_cost_options cost;
    struct skrull_planner_options options;
    struct skrull_cost_model *model;
    int r;

    job_cost_options(spec, &cost);
    r = skrull_cost_model_new(&cost, &model, err);
    if (r < 0) {
        return r;
    }
    job_planner_options(spec, &options);
    r = estimate_check(&options, model, plan, say_fault, faults, err);
    if (r == 0 && ctl_has(ctl, "--barrier")) {
        r = skrull_planner_evaluate(&options, model, true, plan, err);
    }
    skrull_cost_model_free(model);
    return r;
}

static int print_sound(const struct ctl *ctl, const struct skrull_plan *plan, bool is_index_read)
{
    char digest[SKRULL_DIGEST_HEX_SIZE], iteration[PLAN_MS_SIZE], bound[PLAN_MS_SIZE];
    char gap[PLAN_MS_SIZE];
    struct skrull_error err;
    char *text = NULL;
    int r;

    if (ctl->format == CTL_JSON) {
        r = codec_text_estimate(&plan->estimate, true, &text, &err);
        return ctl_print_json(ctl, r, text, &err);
    }
    skrull_digest_to_hex(plan->digest, digest);
    (void)printf(
        "sound%s  step %" PRIu64 "  policy %s  digest %s  iteration %s ms  bound %s ms  gap %s\n",
        is_index_read ? "" : " (lengths not checked)", plan->step, plan->policy, digest,
        plan_ms(plan->estimate.iteration_ns, iteration), plan_ms(plan->estimate.bound_ns, bound),
        plan_gap(plan->estimate.iteration_ns, plan->estimate.bound_ns, gap));
    return CTL_DONE;
}

/* Judges the plan with the opened job, or by the spec alone where `job` is NULL. */
static int check(const struct ctl *ctl, const struct job *job, const struct skrull_job *spec,
                 struct skrull_plan *plan)
{
    struct faults faults = {.ctl = ctl};
    struct skrull_error err;
    int r = job ? job_check_plan(job, plan, say_fault, &faults, &err)
                : job_check_plan_unseen(spec, plan, say_fault, &faults, &err);

    if (r == 0) {
        r = evaluate(ctl, spec, plan, &faults, &err);
    }
    if (r == PLAN_CHECK_UNSOUND) {
        return CTL_FAULT;
    }
    return r < 0 ? ctl_fail(ctl, &err) : print_sound(ctl, plan, job != NULL);
}

/* Opens the job where its indexes can be read here, and checks; else by `spec` alone, and says so.
 */
static int check_where_readable(const struct ctl *ctl, const struct skrull_job *spec,
                                const char *folder, struct skrull_plan *plan)
{
    struct job *job = NULL;
    struct skrull_error err;
    int status;

    if (plan_source_open_spec(ctl, spec, folder, &job, &err) < 0) {
        (void)fprintf(
            stderr,
            "skrullctl: plan check: lengths are not checked, the index cannot be read here: "
            "%s (--data-root says where it is)\n",
            err.message);
    }
    status = check(ctl, job, job ? job_spec(job) : spec, plan);
    job_unref(job);
    return status;
}

/* A plan of a file against a job file. */
static int check_files(const struct ctl *ctl, struct skrull_plan *plan)
{
    struct plan_source_job file;
    int status = plan_source_read_job(ctl, ctl_text(ctl, "--job"), &file);

    if (status == CTL_DONE) {
        status = check_where_readable(ctl, file.spec, file.folder, plan);
        plan_source_job_deinit(&file);
    }
    return status;
}

/* A plan of the daemon against the daemon's job, whose indexes may be on another machine. */
static int check_daemons(struct ctl *ctl, struct skrull_plan *plan)
{
    struct skrull_client *client;
    struct skrull_job *spec;
    struct skrull_error err;
    int status = ctl_connect(ctl, &client);

    if (status != CTL_DONE) {
        return status;
    }
    if (skrull_client_get_job(client, ctl->operands[0], &spec, &err) < 0) {
        return ctl_fail(ctl, &err);
    }
    status = check_where_readable(ctl, spec, ".", plan);
    skrull_job_free(spec);
    return status;
}

int cmd_plan_check(struct ctl *ctl)
{
    bool is_file = ctl_has(ctl, "-f");
    struct skrull_plan *plan;
    int status;

    if (is_file != ctl_has(ctl, "--job")) {
        return ctl_misuse(ctl, "-f PLAN.json and --job JOBFILE belong together");
    }
    ctl->is_checking = true;
    status = plan_source_either(ctl, &plan);
    if (status != CTL_DONE) {
        return status;
    }
    status = is_file ? check_files(ctl, plan) : check_daemons(ctl, plan);
    skrull_plan_free(plan);
    return status;
}

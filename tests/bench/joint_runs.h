/* Plans of many batches by one policy, with what they cost. */
#pragma once

#include "bench/joint_settings.h"
#include "bench/length_draw.h"

#define RUNS_MAX 64

struct run {
    double time_ms, bound_ms, simple_ms; /* modelled; what no plan beats; what a checker knows */
    double planning_ms;                  /* of this process */
};

struct runs {
    size_t n;
    struct run of[RUNS_MAX];
};

/* What is planned. */
struct runs_plan {
    const struct joint_setting *setting;
    const struct length_list *list; /* cut to what fixed mode can hold */
    const char *policy;
    const char *profile; /* NULL: paper-h100 */
    const char *run_on;  /* profile that plans are timed by again; NULL: by their own */
    enum skrull_cp_mode cp_mode;
    enum skrull_mix mix;
    bool equal_micro_batches;
    uint64_t effort;
    size_t n_batches; /* at most RUNS_MAX; seeds 1000, 1001, ... */
};

/* Reads the setting's list, without what is longer than fixed mode can hold. */
struct length_list runs_read_list(const char *folder, const struct joint_setting *setting);

/* Exits on failure: this is for programs. */
struct runs runs_of(const struct runs_plan *plan);

/* Geometric mean of a's times over b's; mean gap to the bound and to the simple bound in percent;
 * a quantile of the planning time. */
double runs_ratio(const struct runs *a, const struct runs *b);
double runs_gap(const struct runs *runs);
double runs_simple_gap(const struct runs *runs);
double runs_planning_ms(const struct runs *const *runs, size_t n, double quantile);

/*
 * The joint solver against what it must reach: the paper's six settings, 20 batches each, both
 * modes; planning time at every effort; and thousands of ranks. A figure beyond its limit is marked
 * `!`, and the exit status is then 1. Figures of modelled time are the same on every machine.
 *
 * usage: bench_joint LENGTHS_DIR
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bench/joint_runs.h"

#define N_BATCHES 20
#define N_SETTINGS 6
#define N_MODES 2
#define N_OTHERS 3    /* policies that do the same work */
#define SKRULL 2      /* of them */
#define MOST_LONGER 4 /* percent, of low effort */

static const char *const others[N_OTHERS] = {"uniform", "round_robin", "skrull"};
static const char *const mode_names[N_MODES] = {"fixed", "elastic"};
static const enum skrull_cp_mode modes[N_MODES] = {SKRULL_CP_MODE_FIXED, SKRULL_CP_MODE_ELASTIC};
static const double least_ratio[N_MODES] = {1.55, 1.65};

static bool is_met = true;

/* What stands beside a figure: `!` if it is over its limit. */
static char mark(double value, double limit)
{
    is_met &= value <= limit;
    return value > limit ? '!' : ' ';
}

struct results {
    struct runs others[N_SETTINGS][N_OTHERS]; /* the same in both modes */
    struct runs low[N_SETTINGS][N_MODES], normal[N_SETTINGS][N_MODES], high[N_SETTINGS][N_MODES];
};

static struct results results;

static void run_setting(const char *folder, size_t i)
{
    const struct joint_setting *setting = &joint_settings[i];
    struct length_list list = runs_read_list(folder, setting);
    struct runs_plan plan = {
        .setting = setting, .list = &list, .cp_mode = SKRULL_CP_MODE_FIXED, .n_batches = N_BATCHES};

    for (size_t j = 0; j < N_OTHERS; j++) {
        plan.policy = others[j];
        results.others[i][j] = runs_of(&plan);
    }
    plan.policy = "joint";
    for (size_t m = 0; m < N_MODES; m++) {
        plan.cp_mode = modes[m];
        plan.effort = SKRULL_EFFORT_LOW;
        results.low[i][m] = runs_of(&plan);
        plan.effort = SKRULL_EFFORT_DEFAULT;
        results.normal[i][m] = runs_of(&plan);
        plan.effort = SKRULL_EFFORT_HIGH;
        results.high[i][m] = runs_of(&plan);
    }
    length_list_free(&list);
}

static size_t count_slower(const struct runs *a, const struct runs *b)
{
    size_t n = 0;

    for (size_t i = 0; i < a->n; i++) {
        n += a->of[i].time_ms > b->of[i].time_ms;
    }
    return n;
}

static double mean_ms(const struct runs *runs)
{
    double sum = 0;

    for (size_t i = 0; i < runs->n; i++) {
        sum += runs->of[i].time_ms;
    }
    return sum / (double)runs->n;
}

/* `skrull` over the bound: no planner's ratio is larger. */
static double limit_of(const struct runs *skrull, const struct runs *joint)
{
    double sum = 0;

    for (size_t i = 0; i < skrull->n; i++) {
        sum += log(skrull->of[i].time_ms / joint->of[i].bound_ms);
    }
    return exp(sum / (double)skrull->n);
}

/* Than another policy, than fixed mode, than with less effort: batches of all efforts. */
static size_t count_all_slower(size_t i, size_t m)
{
    const struct runs *efforts[] = {&results.low[i][m], &results.normal[i][m], &results.high[i][m]};
    const struct runs *fixed[] = {&results.low[i][0], &results.normal[i][0], &results.high[i][0]};
    size_t n = 0;

    for (size_t e = 0; e < 3; e++) {
        for (size_t j = 0; j < N_OTHERS; j++) {
            n += count_slower(efforts[e], &results.others[i][j]);
        }
        n += count_slower(efforts[e], fixed[e]);
        n += e > 0 ? count_slower(efforts[e], efforts[e - 1]) : 0;
    }
    return n;
}

static void print_mode(size_t i, size_t m)
{
    const struct joint_setting *setting = &joint_settings[i];
    const struct runs *skrull = &results.others[i][SKRULL], *normal = &results.normal[i][m];
    const double gap = runs_gap(normal), high_gap = runs_gap(&results.high[i][m]);
    const double simple_gap = runs_simple_gap(normal);
    const size_t slower = count_all_slower(i, m);

    printf("%-12s %-11s %-7s %8.2f ms, skrull %8.2f, ratio %.3f of %.3f |", setting->preset,
           setting->list, mode_names[m], mean_ms(normal), mean_ms(skrull),
           runs_ratio(skrull, normal), limit_of(skrull, normal));
    printf(" gap %5.2f %% (%.1f)%c", gap, setting->gap[m], mark(gap, setting->gap[m]));
    printf(" high %5.2f (%.1f)%c", high_gap, setting->high_gap[m],
           mark(high_gap, setting->high_gap[m]));
    printf(" checker's %5.2f (%.1f)%c", simple_gap, setting->simple_gap[m],
           mark(simple_gap, setting->simple_gap[m]));
    printf(" slower %zu (0)%c\n", slower, mark((double)slower, 0));
}

static void print_means(void)
{
    for (size_t m = 0; m < N_MODES; m++) {
        double ratio = 0, limit = 0, low = 0;

        for (size_t i = 0; i < N_SETTINGS; i++) {
            ratio +=
                log(runs_ratio(&results.others[i][SKRULL], &results.normal[i][m])) / N_SETTINGS;
            limit += log(limit_of(&results.others[i][SKRULL], &results.normal[i][m])) / N_SETTINGS;
            low += 100 * (runs_ratio(&results.low[i][m], &results.normal[i][m]) - 1) / N_SETTINGS;
        }
        printf("%-7s ratio to skrull, geometric mean: %.3f (at least %.2f)%c of %.3f at the bound;",
               mode_names[m], exp(ratio), least_ratio[m], mark(least_ratio[m], exp(ratio)),
               exp(limit));
        printf(" low effort %.2f %% longer (%d)%c\n", low, MOST_LONGER, mark(low, MOST_LONGER));
    }
}

/* Of the settings of 256 sequences on 32 ranks. */
static void print_effort(const char *name, const struct runs (*runs)[N_MODES], double p50_ms,
                         double p99_ms)
{
    for (size_t m = 0; m < N_MODES; m++) {
        const struct runs *of[N_SETTINGS];
        double p50, p99;
        size_t n = 0;

        for (size_t i = 0; i < N_SETTINGS; i++) {
            if (joint_settings[i].n_sequences == 256) {
                of[n++] = &runs[i][m];
            }
        }
        p50 = runs_planning_ms(of, n, 0.50);
        p99 = runs_planning_ms(of, n, 0.99);
        printf("256 on 32, effort %-7s %-7s p50 %7.2f ms (%.1f)%c p99 %7.2f ms (%.0f)%c; p50 by "
               "setting",
               name, mode_names[m], p50, p50_ms, mark(p50, p50_ms), p99, p99_ms, mark(p99, p99_ms));
        for (size_t i = 0; i < n; i++) {
            printf(" %.2f", runs_planning_ms(&of[i], 1, 0.50));
        }
        printf("\n");
    }
}

static void run_scale(const char *folder, const char *list_name, const struct joint_setting *scale,
                      const double limits_ms[N_MODES])
{
    struct joint_setting setting = *scale;
    struct length_list list;

    setting.list = list_name;
    list = runs_read_list(folder, &setting);
    for (size_t m = 0; m < N_MODES; m++) {
        const struct runs_plan plan = {.setting = &setting,
                                       .list = &list,
                                       .policy = "joint",
                                       .cp_mode = modes[m],
                                       .n_batches = setting.n_sequences > 20000 ? 3 : 5};
        const struct runs runs = runs_of(&plan), *of = &runs;
        double p50;

        p50 = runs_planning_ms(&of, 1, 0.5);
        printf("%6zu on %5u %-11s %-7s gap %5.2f %%, p50 %7.1f ms (%.0f)%c\n", setting.n_sequences,
               setting.dp * setting.cp, list_name, mode_names[m], runs_gap(&runs), p50,
               limits_ms[m], mark(p50, limits_ms[m]));
    }
    length_list_free(&list);
}

static void run_scales(const char *folder)
{
    static const char *const lists[] = {"wikipedia", "lmsyschat1m", "chatqa2"};
    static const struct joint_setting scales[] = {
        {.preset = "qwen2.5-0.5b", .dp = 64, .cp = 8, .bucket_tokens = 26624, .n_sequences = 4096},
        {.preset = "qwen2.5-0.5b",
         .dp = 256,
         .cp = 8,
         .bucket_tokens = 26624,
         .n_sequences = 16384},
        {.preset = "qwen2.5-0.5b",
         .dp = 1024,
         .cp = 8,
         .bucket_tokens = 26624,
         .n_sequences = 65536},
    };
    static const double limits_ms[][N_MODES] = {{25, 40}, {100, 180}, {450, 900}};

    for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
        for (size_t j = 0; j < sizeof(lists) / sizeof(lists[0]); j++) {
            run_scale(folder, lists[j], &scales[i], limits_ms[i]);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: bench_joint LENGTHS_DIR\n");
        return 2;
    }
    printf("joint on the paper's settings, %d batches each; limits in brackets\n", N_BATCHES);
    for (size_t i = 0; i < N_SETTINGS; i++) {
        run_setting(argv[1], i);
        print_mode(i, 0);
        print_mode(i, 1);
        (void)fflush(stdout);
    }
    print_means();
    print_effort("low", (const struct runs(*)[N_MODES])results.low, 0.5, 1);
    print_effort("default", (const struct runs(*)[N_MODES])results.normal, 5, 15);
    print_effort("high", (const struct runs(*)[N_MODES])results.high, 200, 400);
    run_scales(argv[1]);
    return is_met ? 0 : 1;
}

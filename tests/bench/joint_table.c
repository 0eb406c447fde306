/*
 * The README's tables of policy joint, as Markdown: every list of a folder, global batches of 64 to
 * 4,096 sequences, and what it is worth to know of nodes. Modelled time alone, so that they are the
 * same on every machine.
 *
 * usage: joint_table LENGTHS_DIR [--lists DIR]
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/joint_runs.h"

#define N_BATCHES 20
#define MAX_LISTS 64
#define MAX_NAME 64

static const struct joint_setting models[] = {
    {.preset = "qwen2.5-0.5b", .dp = 4, .cp = 8, .bucket_tokens = 26624},
    {.preset = "qwen2.5-7b", .dp = 4, .cp = 8, .bucket_tokens = 13312},
};

static int compare(const void *left, const void *right)
{
    return strcmp(left, right);
}

/* Names of the folder's *.txt without the ending, sorted. */
static size_t find_lists(const char *folder, char names[MAX_LISTS][MAX_NAME])
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    size_t n = 0;

    while (dir && n < MAX_LISTS && (entry = readdir(dir)) != NULL) {
        const size_t len = strlen(entry->d_name);

        if (len > 4 && len < MAX_NAME && strcmp(entry->d_name + len - 4, ".txt") == 0) {
            (void)snprintf(names[n++], MAX_NAME, "%.*s", (int)len - 4, entry->d_name);
        }
    }
    if (!dir || n == 0) {
        fprintf(stderr, "joint_table: no lists in %s\n", folder);
        exit(1);
    }
    (void)closedir(dir);
    qsort(names, n, sizeof(names[0]), compare);
    return n;
}

/* Ratio to skrull and gap, in both modes; the price of one group size a micro-batch, in fixed mode.
 */
static void print_cells(const char *folder, const struct joint_setting *setting)
{
    struct length_list list = runs_read_list(folder, setting);
    struct runs_plan plan = {.setting = setting,
                             .list = &list,
                             .policy = "skrull",
                             .cp_mode = SKRULL_CP_MODE_FIXED,
                             .n_batches = setting->n_sequences > 1024 ? N_BATCHES / 4 : N_BATCHES};
    static struct runs skrull, fixed, elastic, uniform;

    skrull = runs_of(&plan);
    plan.policy = "joint";
    fixed = runs_of(&plan);
    plan.mix = SKRULL_MIX_UNIFORM;
    uniform = runs_of(&plan);
    plan.mix = SKRULL_MIX_ANY;
    plan.cp_mode = SKRULL_CP_MODE_ELASTIC;
    elastic = runs_of(&plan);
    printf(" %.2f | %.1f %% | %.2f | %.1f %% | %.2f |", runs_ratio(&skrull, &fixed),
           runs_gap(&fixed), runs_ratio(&skrull, &elastic), runs_gap(&elastic),
           runs_ratio(&uniform, &fixed));
    length_list_free(&list);
}

static void print_head(const char *first)
{
    printf("| %s | fixed | gap | elastic | gap | `mix: uniform` |\n", first);
    printf("| --- | --- | --- | --- | --- | --- |\n");
}

static void print_lists(const char *folder)
{
    static char names[MAX_LISTS][MAX_NAME];
    const size_t n = find_lists(folder, names);

    for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
        printf("\n%s, 256 sequences on <4, 8>:\n\n", models[m].preset);
        print_head("list");
        for (size_t i = 0; i < n; i++) {
            struct joint_setting setting = models[m];

            setting.list = names[i];
            setting.n_sequences = 256;
            printf("| %s |", names[i]);
            print_cells(folder, &setting);
            printf("\n");
            (void)fflush(stdout);
        }
    }
}

static void print_batches(const char *folder)
{
    static const char *const lists[] = {"wikipedia", "lmsyschat1m", "chatqa2"};
    static const size_t sizes[] = {64, 256, 1024, 4096};

    printf("\n%s, global batches on <4, 8>:\n\n", models[0].preset);
    print_head("list, sequences");
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
            struct joint_setting setting = models[0];

            setting.list = lists[i];
            setting.n_sequences = sizes[j];
            printf("| %s, %zu |", lists[i], sizes[j]);
            print_cells(folder, &setting);
            printf("\n");
            (void)fflush(stdout);
        }
    }
}

/* What it is worth to know that exchange across nodes costs more: the time, on nodes of 8, of plans
 * made as if there were none over that of plans made for them; the paper's settings. */
static void print_nodes(const char *folder)
{
    printf(
        "\nthe paper's settings on nodes of 8 GPUs (`h100-nodes`), time of plans made without them "
        "(`paper-h100`) over made for them:\n\n");
    printf("| setting | fixed | gap | elastic | gap |\n| --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < n_joint_settings; i++) {
        const struct joint_setting *setting = &joint_settings[i];
        struct length_list list = runs_read_list(folder, setting);

        printf("| %s, %s, <%u, %u> |", setting->preset, setting->list, setting->dp, setting->cp);
        for (int mode = SKRULL_CP_MODE_FIXED; mode <= SKRULL_CP_MODE_ELASTIC; mode++) {
            struct runs_plan plan = {.setting = setting,
                                     .list = &list,
                                     .policy = "joint",
                                     .run_on = "h100-nodes",
                                     .cp_mode = (enum skrull_cp_mode)mode,
                                     .n_batches = N_BATCHES};
            static struct runs unaware, aware;

            unaware = runs_of(&plan);
            plan.profile = "h100-nodes";
            aware = runs_of(&plan);
            printf(" %.3f | %.1f %% |", runs_ratio(&unaware, &aware), runs_gap(&aware));
        }
        printf("\n");
        length_list_free(&list);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2 && (argc != 4 || strcmp(argv[2], "--lists") != 0)) {
        fprintf(stderr, "usage: joint_table LENGTHS_DIR [--lists DIR]\n");
        return 2;
    }
    print_lists(argc == 4 ? argv[3] : argv[1]);
    print_batches(argv[1]);
    print_nodes(argv[1]);
    return 0;
}

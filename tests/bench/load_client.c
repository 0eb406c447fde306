/*
 * Load on a running skrulld, from one thread, measured on this side. Each stream has a connection
 * of its own, as workers have.
 *
 * usage: load_client CASE ADDRESS JOB [KEY=VALUE]...
 *   throughput  streams run freely (window 0); RankPlans a second over all of them
 *   memory      streams with the client's default window, each with all plans it may have; the
 *               daemon's RSS (pid=PID)
 *   first       from the start of a stream until its first plan, on an open connection and on a
 *               new one; each on a step that is not planned yet and not yet given out
 *   fanout      from the report that opens the window of all ranks until the last has its plan
 * keys: streams, ranks (of the job), runs, seconds (of a run), limits=0 (none), pid
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/load_case.h"

#define DEFAULT_WINDOW 16
#define BLOCK 64 /* steps that are given out at once */
#define SETTLE_MS 300.0

double *load_values(uint64_t n)
{
    double *values = calloc(n > 0 ? n : 1, sizeof(*values));

    if (!values) {
        load_fail("values", "out of memory");
    }
    return values;
}

bool load_print(const struct options *options, const char *what, const char *unit, double limit,
                double *values)
{
    const struct figure figure = {.what = what,
                                  .unit = unit,
                                  .limit = options->limits ? limit : 0,
                                  .is_floor = strcmp(unit, "plans/s") == 0};

    return figure_print(&figure, values, options->runs);
}

/* Each stream has got as many plans as `arg` points to. */
static bool has_all(struct load *load)
{
    const uint64_t *wanted = (const uint64_t *)load->arg;

    return load->n_received == *wanted;
}

static void wait_for(struct load *load, uint64_t n_received)
{
    load->arg = &n_received;
    load_run(load, has_all, 0);
    load->arg = NULL;
}

void load_open_all(struct load *load, const struct options *options, uint64_t from_step,
                   uint32_t window)
{
    load->n_received = 0;
    load->n_bytes = 0;
    for (size_t i = 0; i < load->n_streams; i++) {
        load_open(load, i, (uint32_t)(i % options->ranks), from_step, window);
    }
}

/* --- throughput --- */

static bool has_started(struct load *load)
{
    for (size_t i = 0; i < load->n_streams; i++) {
        if (load->streams[i].n_received == 0) {
            return false;
        }
    }
    return true;
}

static bool throughput(const struct options *options)
{
    double *values = load_values(options->runs), bytes = 0;
    struct load load;
    char what[256];
    bool is_within;

    load_init(&load, options->target, options->job, options->streams);
    for (uint64_t run = 0; run < options->runs; run++) {
        double start_ms;
        uint64_t before;

        load_open_all(&load, options, run * 1000000, 0);
        load_run(&load, has_started, 0);
        load_run(&load, NULL, figure_now_ms() + SETTLE_MS);
        start_ms = figure_now_ms();
        before = load.n_received;
        load_run(&load, NULL, start_ms + (double)options->seconds * 1e3);
        values[run] = (double)(load.n_received - before) / (figure_now_ms() - start_ms) * 1e3;
        bytes = (double)load.n_bytes / (double)load.n_received;
        load_close(&load);
    }
    (void)snprintf(what, sizeof(what),
                   "RankPlans of %.0f bytes over %" PRIu64 " streams, a connection each", bytes,
                   options->streams);
    is_within = load_print(options, what, "plans/s", 60000, values);
    load_deinit(&load);
    free(values);
    return is_within;
}

/* --- memory --- */

static double rss_mb(uint64_t pid)
{
    char path[64], line[256];
    unsigned long kb = 0;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%" PRIu64 "/status", pid);
    file = fopen(path, "r");
    if (!file) {
        load_fail(path, "cannot be opened");
    }
    while (fgets(line, sizeof(line), file)) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kb = strtoul(line + 6, NULL, 10);
        }
    }
    (void)fclose(file);
    return (double)kb / 1e3;
}

static bool memory(const struct options *options)
{
    double *values = load_values(options->runs);
    struct load load;
    char what[256];
    bool is_within;

    printf("       %9.2f MB                     RSS before\n", rss_mb(options->pid));
    load_init(&load, options->target, options->job, options->streams);
    for (uint64_t run = 0; run < options->runs; run++) {
        load_open_all(&load, options, run * BLOCK, DEFAULT_WINDOW);
        wait_for(&load, options->streams * DEFAULT_WINDOW);
        load_run(&load, NULL, figure_now_ms() + SETTLE_MS);
        values[run] = rss_mb(options->pid);
        load_close(&load);
        for (size_t i = 0; i < load.n_streams; i++) {
            load_renew_channel(&load.streams[i]);
        }
        load_run(&load, NULL, figure_now_ms() + SETTLE_MS);
    }
    (void)snprintf(what, sizeof(what),
                   "RSS with %" PRIu64 " connections, a stream each that has got %d plans",
                   options->streams, DEFAULT_WINDOW);
    is_within = load_print(options, what, "MB", 200, values);
    load_deinit(&load);
    free(values);
    return is_within;
}

/* --- first --- */

static bool first(const struct options *options)
{
    double *values = load_values(options->runs);
    struct load load;
    uint64_t step = 0;
    bool is_within = true;

    load_init(&load, options->target, options->job, 1);
    for (int is_new = 0; is_new < 2; is_new++) {
        for (uint64_t run = 0; run < options->runs; run++, step += BLOCK) {
            double start_ms;

            load.n_received = 0;
            if (is_new) {
                load_renew_channel(&load.streams[0]);
            }
            start_ms = figure_now_ms();
            load_open(&load, 0, (uint32_t)(run % options->ranks), step, 1);
            wait_for(&load, 1);
            values[run] = figure_now_ms() - start_ms;
            load_close(&load);
        }
        is_within &= load_print(options,
                                is_new ? "first plan of a new stream on a new connection"
                                       : "first plan of a new stream on an open connection",
                                "ms", 20, values);
    }
    load_deinit(&load);
    free(values);
    return is_within;
}

/* --- options --- */

static bool parse_key(struct options *options, const char *arg)
{
    const struct {
        const char *key;
        uint64_t *value;
    } keys[] = {
        {"streams", &options->streams}, {"ranks", &options->ranks},   {"runs", &options->runs},
        {"seconds", &options->seconds}, {"limits", &options->limits}, {"pid", &options->pid},
    };
    const char *equals = strchr(arg, '=');

    for (size_t i = 0; equals && i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strncmp(arg, keys[i].key, (size_t)(equals - arg)) == 0 &&
            keys[i].key[equals - arg] == '\0') {
            *keys[i].value = strtoull(equals + 1, NULL, 10);
            return true;
        }
    }
    return false;
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        bool (*run)(const struct options *options);
    } cases[] = {
        {"throughput", throughput}, {"memory", memory}, {"first", first}, {"fanout", load_fanout}};
    struct options options = {.streams = 1, .ranks = 1, .runs = 1, .seconds = 1, .limits = 1};
    bool is_usage = argc < 4, is_within = false;

    for (int i = 4; i < argc; i++) {
        is_usage |= !parse_key(&options, argv[i]);
    }
    if (is_usage || options.streams == 0 || options.ranks == 0 || options.runs == 0) {
        fprintf(stderr, "usage: load_client CASE ADDRESS JOB [KEY=VALUE]...\n");
        return 2;
    }
    options.target = argv[2];
    options.job = argv[3];
    raise_descriptor_limit();
    grpc_init();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            is_within = cases[i].run(&options);
        }
    }
    grpc_shutdown();
    return is_within ? 0 : 1;
}

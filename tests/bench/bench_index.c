/*
 * What a large index costs: opening it, creating a job on it, sampling any step of it, converting
 * it from text. The index is drawn from a real length list and written to FOLDER (four bytes a row
 * as .skx, about as many as text); it is in the page cache when it is measured, as it is after a
 * job was created on it, which reads all of it.
 *
 * usage: bench_index LENGTHS SKRULLCTL FOLDER ROWS; limits hold from 100,000,000 rows on
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena.h"
#include "bench/figure.h"
#include "bench/length_list.h"
#include "index/index.h"
#include "job/job.h"
#include "job/job_private.h"
#include "job_file.h"

#define FULL_ROWS UINT64_C(100000000)
#define OPEN_RUNS 21
#define JOB_RUNS 3
#define STEP_RUNS 2001
#define CONVERT_RUNS 3
#define DISK_SHARE 0.8 /* of what it writes alone, where it is slower than what is promised */
#define BATCH 256
#define JOB_BUDGET ((size_t)16 << 20)

struct bench {
    const char *ctl, *folder;
    char skx[512], text[512], converted[512];
    uint64_t rows, text_bytes;
    bool has_limits, is_within;
};

static _Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_index: %s: %s\n", what, why);
    exit(1);
}

static void *allocate(size_t n, size_t size)
{
    void *memory = calloc(n, size);

    if (!memory) {
        fail("bench_index", "out of memory");
    }
    return memory;
}

static void print(struct bench *bench, const char *unit, double limit, double *values, size_t n,
                  const char *what)
{
    const struct figure figure = {.what = what,
                                  .unit = unit,
                                  .limit = bench->has_limits ? limit : 0,
                                  .is_floor = strcmp(unit, "MB/s") == 0};

    bench->is_within &= figure_print(&figure, values, n);
}

/* --- the input --- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void write_text(struct bench *bench, const uint32_t *lengths)
{
    FILE *file = fopen(bench->text, "w");

    if (!file) {
        fail(bench->text, strerror(errno));
    }
    for (uint64_t i = 0; i < bench->rows; i++) {
        char line[16];
        size_t at = sizeof(line);
        uint32_t length = lengths[i];

        line[--at] = '\n';
        for (; length > 0; length /= 10) {
            line[--at] = (char)('0' + length % 10);
        }
        bench->text_bytes += sizeof(line) - at;
        (void)fwrite_unlocked(line + at, 1, sizeof(line) - at, file);
    }
    if (ferror(file) || fflush(file) || fsync(fileno(file)) || fclose(file)) {
        fail(bench->text, strerror(errno));
    }
}

static void write_input(struct bench *bench, const char *list_path)
{
    struct length_list list = length_list_read(list_path, UINT32_MAX, 1);
    uint32_t *lengths = allocate((size_t)bench->rows, sizeof(*lengths));
    struct length_index idx = {.format = "skx", .lengths = lengths, .count = bench->rows};
    struct skrull_error err = {0};
    uint64_t state = 1;

    for (uint64_t i = 0; i < bench->rows; i++) {
        lengths[i] = list.lengths[next_random(&state) % list.n];
        idx.tokens += lengths[i];
    }
    if (index_write_skx(&idx, bench->skx, &err) < 0) {
        fail(bench->skx, err.message);
    }
    write_text(bench, lengths);
    free(lengths);
    length_list_free(&list);
}

/* --- what is measured --- */

static void bench_open(struct bench *bench)
{
    double values[OPEN_RUNS];

    for (size_t i = 0; i < OPEN_RUNS; i++) {
        const double start_ms = figure_now_ms();
        int fd = open(bench->skx, O_RDONLY | O_CLOEXEC);
        struct skrull_error err = {0};
        struct length_index *idx;

        if (fd < 0 || index_open(fd, bench->skx, NULL, &idx, &err) < 0) {
            fail(bench->skx, fd < 0 ? strerror(errno) : err.message);
        }
        values[i] = figure_now_ms() - start_ms;
        (void)close(fd);
        index_close(idx);
    }
    print(bench, "ms", 20, values, OPEN_RUNS, "a .skx opens");
}

static struct job *open_job(struct bench *bench, const char *bucket_tokens)
{
    char text[1024];
    struct arena *arena = arena_new(JOB_BUDGET);
    struct skrull_job *spec;
    struct job *job;
    struct skrull_error err = {0};
    const struct job_roots roots = {.paths = &bench->folder, .n_paths = 1};
    int len = snprintf(text, sizeof(text),
                       "name: bench\nmodel: {preset: qwen2.5-0.5b}\nparallel: {dp: 4, cp: 8}\n"
                       "batch: {global: %d, bucket_tokens: %s}\n"
                       "data: [{index: index.skx, over_length: drop}]\nseed: 42\n",
                       BATCH, bucket_tokens);

    if (!arena || job_file_parse(arena, text, (size_t)len, &spec, &err) < 0 ||
        job_open(spec, &roots, &job, &err) < 0) {
        fail("job", err.message);
    }
    arena_free(arena);
    return job;
}

static void bench_steps(struct bench *bench, const struct job *job, const char *what)
{
    double *values = allocate(STEP_RUNS, sizeof(*values));
    uint64_t state = 7;

    for (size_t i = 0; i < STEP_RUNS; i++) {
        const uint64_t step = next_random(&state) % job_spec(job)->info.steps;
        const double start_ms = figure_now_ms();
        struct skrull_sequence *sequences;
        struct sample_batch batch;
        struct skrull_error err = {0};

        if (job_batch(job, step, &sequences, &batch, &err) < 0) {
            fail("step", err.message);
        }
        values[i] = figure_now_ms() - start_ms;
        free(sequences);
    }
    print(bench, "ms", 1, values, STEP_RUNS, what);
    free(values);
}

static void bench_job(struct bench *bench, const char *bucket_tokens, const char *kind)
{
    double values[JOB_RUNS];
    struct job *job = NULL;
    char what[256];

    for (size_t i = 0; i < JOB_RUNS; i++) {
        const double start_ms = figure_now_ms();

        if (job) {
            job_unref(job);
        }
        job = open_job(bench, bucket_tokens);
        values[i] = figure_now_ms() - start_ms;
    }
    (void)snprintf(what, sizeof(what),
                   "a job is created on it: payload hash, every length, %" PRIu64 " rows dropped",
                   job_spec(job)->info.dropped);
    print(bench, "ms", 0, values, JOB_RUNS, what);
    (void)snprintf(what, sizeof(what), "any step of %d is sampled, lengths looked up, %s", BATCH,
                   kind);
    bench_steps(bench, job, what);
    job_unref(job);
}

static void run_ctl(struct bench *bench)
{
    char ctl[] = "skrullctl", index[] = "index", convert[] = "convert";
    char *argv[] = {ctl, index, convert, bench->text, bench->converted, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = 0;

    if (posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) != 0 ||
        posix_spawn(&pid, bench->ctl, &actions, NULL, argv, environ) != 0 ||
        waitpid(pid, &status, 0) != pid || status != 0) {
        fail(bench->ctl, "index convert failed");
    }
    (void)posix_spawn_file_actions_destroy(&actions);
}

/* What the disk takes for the result alone, copied and synced: no conversion can be faster. */
static void copy_result(struct bench *bench, const struct length_index *idx)
{
    const char *bytes = (const char *)idx->lengths;
    size_t left = (size_t)idx->count * sizeof(*idx->lengths);
    int fd = open(bench->converted, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    while (fd >= 0 && left > 0) {
        const ssize_t n = write(fd, bytes, left);

        if (n <= 0) {
            break;
        }
        bytes += n;
        left -= (size_t)n;
    }
    if (fd < 0 || left > 0 || fsync(fd) != 0 || close(fd) != 0) {
        fail(bench->converted, strerror(errno));
    }
}

/* In MB of text a second, both. The disk is the limit where it is slower than the promise. */
static void bench_convert(struct bench *bench)
{
    const double mb = (double)bench->text_bytes / 1e6;
    double disk[CONVERT_RUNS], values[CONVERT_RUNS], limit;
    int fd = open(bench->skx, O_RDONLY | O_CLOEXEC);
    struct skrull_error err = {0};
    struct length_index *idx;

    if (fd < 0 || index_open(fd, bench->skx, NULL, &idx, &err) < 0) {
        fail(bench->skx, fd < 0 ? strerror(errno) : err.message);
    }
    (void)close(fd);
    for (size_t i = 0; i < CONVERT_RUNS; i++) {
        double start_ms = figure_now_ms();

        copy_result(bench, idx);
        disk[i] = mb * 1e3 / (figure_now_ms() - start_ms);
        (void)unlink(bench->converted);
        start_ms = figure_now_ms();
        run_ctl(bench);
        values[i] = mb * 1e3 / (figure_now_ms() - start_ms);
    }
    index_close(idx);
    print(bench, "MB/s", 0, disk, CONVERT_RUNS, "of text, were it only to write and sync the .skx");
    limit = disk[CONVERT_RUNS / 2] * DISK_SHARE; /* sorted by now */
    print(bench, "MB/s", limit < 200 ? limit : 200, values, CONVERT_RUNS,
          "of text converted to a durable .skx by skrullctl");
}

int main(int argc, char **argv)
{
    struct bench bench = {.is_within = true};

    if (argc != 5) {
        fprintf(stderr, "usage: bench_index LENGTHS SKRULLCTL FOLDER ROWS\n");
        return 2;
    }
    bench.ctl = argv[2];
    bench.folder = argv[3];
    bench.rows = strtoull(argv[4], NULL, 10);
    bench.has_limits = bench.rows >= FULL_ROWS;
    (void)snprintf(bench.skx, sizeof(bench.skx), "%s/index.skx", bench.folder);
    (void)snprintf(bench.text, sizeof(bench.text), "%s/index.txt", bench.folder);
    (void)snprintf(bench.converted, sizeof(bench.converted), "%s/converted.skx", bench.folder);
    write_input(&bench, argv[1]);
    printf("an index of %" PRIu64 " rows, %.0f MB as text\n", bench.rows,
           (double)bench.text_bytes / 1e6);
    bench_open(&bench);
    bench_job(&bench, "26624", "none dropped");
    bench_job(&bench, "160", "a tenth dropped");
    bench_convert(&bench);
    (void)unlink(bench.skx);
    (void)unlink(bench.text);
    (void)unlink(bench.converted);
    return bench.is_within ? 0 : 1;
}

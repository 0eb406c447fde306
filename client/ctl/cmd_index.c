/* index describe, index convert: length indexes of this machine. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "cmd.h"
#include "codec_text.h"
#include "ctl.h"
#include "histogram.h"
#include "index/index.h"
#include "table.h"
#include "terminal.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define N_BINS 33
#define MARGIN 40 /* columns beside a bar */
#define MAX_BAR 60

static int find_unit(const struct ctl *ctl, enum skrull_unit *ret_unit)
{
    const char *unit = ctl_text(ctl, "--unit");

    if (!unit || strcmp(unit, "sequence") == 0) {
        *ret_unit = SKRULL_UNIT_SEQUENCE;
    } else if (strcmp(unit, "document") == 0) {
        *ret_unit = SKRULL_UNIT_DOCUMENT;
    } else {
        return ctl_misuse(ctl, "--unit %s: sequence and document are known", unit);
    }
    return CTL_DONE;
}

/* Opens operand 0 and reads all of it. Returns the exit status. */
static int open_index(const struct ctl *ctl, struct length_index **ret_idx)
{
    struct index_options options = {.format = ctl_text(ctl, "--format"),
                                    .column = ctl_text(ctl, "--column")};
    const char *path = ctl->operands[0];
    /* Not to wait for a pipe's writer: index_open refuses what is no regular file. */
    _cleanup_(cleanup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct length_index *idx;
    struct skrull_error err;
    uint64_t ignored;

    if (find_unit(ctl, &options.unit) != CTL_DONE) {
        return CTL_USAGE;
    }
    if (fd < 0) {
        int code = errno == ENOENT || errno == ENOTDIR ? SKRULL_ERR_NOT_FOUND : SKRULL_ERR_UNKNOWN;

        (void)skrull_error_set(&err, code, "%s: %s", path, strerror(errno));
        return ctl_fail(ctl, &err);
    }
    if (index_open(fd, path, &options, &idx, &err) < 0) {
        return ctl_fail(ctl, &err);
    }
    if (index_verify(idx, &ignored, &err) < 0) {
        index_close(idx);
        return ctl_fail(ctl, &err);
    }
    *ret_idx = idx;
    return CTL_DONE;
}

/* The statistics in the message's words; `bins` are those that hold something. */
struct message_stats {
    struct rpc_index_stats stats;
    __typeof__(*((struct rpc_index_stats *)NULL)->bins) bins[N_BINS];
};

static void to_message(const struct index_stats *stats, struct message_stats *ret)
{
    *ret = (struct message_stats){.stats = {.format = stats->format,
                                            .count = stats->count,
                                            .tokens = stats->tokens,
                                            .loss_tokens = stats->loss_tokens,
                                            .min = stats->min,
                                            .max = stats->max,
                                            .p50 = stats->p50,
                                            .p90 = stats->p90,
                                            .p99 = stats->p99,
                                            .p999 = stats->p999,
                                            .mean = stats->mean}};
    for (size_t i = 0; i < N_BINS; i++) {
        if (stats->bins[i]) {
            size_t k = ret->stats.n_bins++;

            ret->bins[k].upper = UINT64_C(1) << i;
            ret->bins[k].count = stats->bins[i];
        }
    }
    ret->stats.bins = ret->bins;
}

static void print_histogram(const struct rpc_index_stats *stats)
{
    const struct terminal terminal = terminal_of_stdout();
    size_t width = terminal.width - MARGIN < MAX_BAR ? terminal.width - MARGIN : MAX_BAR;
    char bar[HISTOGRAM_BAR_SIZE(MAX_BAR)];
    uint64_t most = 0;

    for (size_t i = 0; i < stats->n_bins; i++) {
        most = stats->bins[i].count > most ? stats->bins[i].count : most;
    }
    for (size_t i = 0; i < stats->n_bins; i++) {
        uint64_t count = stats->bins[i].count, upper = stats->bins[i].upper;

        histogram_bar(count, most, width, terminal.is_utf8, bar);
        (void)printf("%10" PRIu64 " to %-10" PRIu64 " %11" PRIu64 "  %s\n", upper / 2, upper - 1,
                     count, bar);
    }
}

static void print_stats(const struct rpc_index_stats *stats)
{
    (void)printf("format %s  sequences %" PRIu64 "  tokens %" PRIu64, stats->format, stats->count,
                 stats->tokens);
    if (stats->loss_tokens) {
        (void)printf("  loss tokens %" PRIu64, stats->loss_tokens);
    }
    (void)printf("\nmin %" PRIu64 "  mean %.1f  p50 %" PRIu64 "  p90 %" PRIu64 "  p99 %" PRIu64
                 "  p99.9 %" PRIu64 "  max %" PRIu64 "\n\n%10s    %-10s %11s\n",
                 stats->min, stats->mean, stats->p50, stats->p90, stats->p99, stats->p999,
                 stats->max, "tokens", "", "sequences");
    print_histogram(stats);
}

/* One row: the histogram is left to JSON. */
static int print_csv(const struct rpc_index_stats *stats)
{
    static const struct table_column columns[] = {
        {"format", false}, {"count", true}, {"tokens", true}, {"loss_tokens", true},
        {"min", true},     {"max", true},   {"mean", true},   {"p50", true},
        {"p90", true},     {"p99", true},   {"p999", true},
    };
    const uint64_t before[] = {stats->count, stats->tokens, stats->loss_tokens, stats->min,
                               stats->max};
    const uint64_t after[] = {stats->p50, stats->p90, stats->p99, stats->p999};
    struct table table;
    int r;

    table_init(&table, columns, COUNT(columns));
    table_add(&table, "%s", stats->format);
    for (size_t i = 0; i < COUNT(before); i++) {
        table_add(&table, "%" PRIu64, before[i]);
    }
    table_add(&table, "%.17g", stats->mean);
    for (size_t i = 0; i < COUNT(after); i++) {
        table_add(&table, "%" PRIu64, after[i]);
    }
    r = table_print(&table, true);
    table_deinit(&table);
    return r;
}

static int print_message(const struct ctl *ctl, const struct rpc_index_stats *stats)
{
    struct skrull_error err;
    char *text = NULL;
    int r;

    if (ctl->format == CTL_JSON) {
        r = codec_text_index_stats(stats, true, &text, &err);
        return ctl_print_json(ctl, r, text, &err);
    }
    if (ctl->format == CTL_CSV) {
        if (print_csv(stats) < 0) {
            (void)skrull_error_set(&err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
            return ctl_fail(ctl, &err);
        }
        return CTL_DONE;
    }
    print_stats(stats);
    return CTL_DONE;
}

int cmd_index_describe(struct ctl *ctl)
{
    struct message_stats message;
    struct length_index *idx;
    struct index_stats stats;
    struct skrull_error err;
    int r, status = open_index(ctl, &idx);

    if (status != CTL_DONE) {
        return status;
    }
    r = index_describe(idx, &stats, &err);
    if (r < 0) {
        status = ctl_fail(ctl, &err);
    } else {
        to_message(&stats, &message);
        status = print_message(ctl, &message.stats);
    }
    index_close(idx);
    return status;
}

/* Whether an open file may be replaced: an .skx, or one that holds nothing. */
static bool is_replaceable(int fd, const struct stat *info)
{
    char magic[SKX_MAGIC_SIZE];

    if (!S_ISREG(info->st_mode)) {
        return false;
    }
    return info->st_size == 0 || (pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
                                  memcmp(magic, SKX_MAGIC, sizeof(magic)) == 0);
}

/* Guards what lies at the destination: the source itself, or what convert has not written. */
static int check_destination(const char *from, const char *to, struct skrull_error *err)
{
    _cleanup_(cleanup_fd) int fd = open(to, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat source, info;

    if (stat(to, &info) != 0) {
        return 0; /* nothing there, or writing says why not */
    }
    if (stat(from, &source) == 0 && source.st_dev == info.st_dev && source.st_ino == info.st_ino) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: is the same file as %s, which would be lost; name another", to,
                                from);
    }
    if (fd < 0 || fstat(fd, &info) != 0 || !is_replaceable(fd, &info)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: exists and is no .skx, so it is not overwritten; remove it "
                                "first, or name another",
                                to);
    }
    return 0;
}

int cmd_index_convert(struct ctl *ctl)
{
    struct length_index *idx;
    struct skrull_error err;
    int status;

    if (check_destination(ctl->operands[0], ctl->operands[1], &err) < 0) {
        return ctl_fail(ctl, &err);
    }
    status = open_index(ctl, &idx);
    if (status != CTL_DONE) {
        return status;
    }
    if (index_write_skx(idx, ctl->operands[1], &err) < 0) {
        status = ctl_fail(ctl, &err);
    } else if (ctl->format == CTL_TABLE || ctl->format == CTL_WIDE) {
        (void)printf("%s: %" PRIu64 " sequences, %" PRIu64 " tokens\n", ctl->operands[1],
                     idx->count, idx->tokens);
    }
    index_close(idx);
    return status;
}

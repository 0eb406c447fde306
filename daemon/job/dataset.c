/*
 * Opening a data set for a job. The index is read in full once, which also computes the payload
 * hash; what is compared later, at each plan, is the file's identity (device, inode, size, mtime)
 * at its path: a file written in place has another mtime, one that replaced it another inode. Rows
 * are read by any number of threads after opening.
 */
#include "job/dataset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckd.h"
#include "cleanup.h"
#include "index/index.h"

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A path under a root, malloc'd; NULL: out of memory. */
static char *join(const char *root, const char *path)
{
    char *joined;

    return asprintf(&joined, "%s/%s", root, path) < 0 ? NULL : joined;
}

static int no_memory(const char *path, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "index %.200s: out of memory",
                            path);
}

/* Finds the path by which the opened file is reached, to look at it again later. */
static int find_path(const char *path, const struct job_roots *roots, const struct stat *opened,
                     char **ret_path, struct skrull_error *err)
{
    size_t n = path[0] == '/' ? 1 : roots->n_paths, i;
    struct stat status;
    char *candidate;

    for (i = 0; i < n; i++) {
        candidate = path[0] == '/' ? strdup(path) : join(roots->paths[i], path);
        if (!candidate) {
            return no_memory(path, err);
        }
        if (stat(candidate, &status) == 0 && is_same_file(&status, opened)) {
            *ret_path = candidate;
            return 0;
        }
        free(candidate);
    }
    return skrull_error_because(err, SKRULL_ERR_FAILED_PRECONDITION, SKRULL_REASON_INDEX_CHANGED, 0,
                                "index %.200s changed while it was opened: try again once it is "
                                "written",
                                path);
}

/* Opens the file and reads all of it. */
static int read_index(struct dataset *dataset, const struct skrull_dataset *spec,
                      const struct job_roots *roots, int fd, struct skrull_error *err)
{
    struct index_options options = {
        .format = spec->format, .column = spec->column, .unit = spec->unit};
    struct stat after;
    int result;

    if (fstat(fd, &dataset->found)) {
        return skrull_error_set(err, SKRULL_ERR_UNAVAILABLE, "index %.200s cannot be read: %s",
                                spec->index, strerror(errno));
    }
    result = find_path(spec->index, roots, &dataset->found, &dataset->path, err);
    if (result == 0) {
        result = index_open(fd, spec->index, &options, &dataset->idx, err);
    }
    if (result == 0) {
        result = index_verify(dataset->idx, &dataset->payload_hash, err);
    }
    if (result == 0 && (fstat(fd, &after) || !is_same_file(&after, &dataset->found))) {
        result = skrull_error_because(
            err, SKRULL_ERR_FAILED_PRECONDITION, SKRULL_REASON_INDEX_CHANGED, 0,
            "index %.200s changed while it was read: try again once it is "
            "written",
            spec->index);
    }
    return result;
}

int dataset_open(const struct skrull_dataset *spec, uint32_t place, const struct job_roots *roots,
                 struct dataset *ret_dataset, struct skrull_error *err)
{
    struct dataset dataset = {.place = place, .limit = UINT32_MAX};
    _cleanup_(cleanup_fd) int fd = -1;
    int result = index_open_under_roots(spec->index, roots->paths, roots->n_paths, &fd, err);

    if (result == 0) {
        result = read_index(&dataset, spec, roots, fd, err);
    }
    if (result == 0 && dataset.idx->count == 0) {
        result = index_refuse_empty(spec->index, err);
    }
    if (result) {
        dataset_close(&dataset);
        return skrull_error_prefix(err, result, "data[%" PRIu32 "].index", place);
    }
    dataset.n_kept = dataset.idx->count;
    *ret_dataset = dataset;
    return 0;
}

void dataset_close(struct dataset *dataset)
{
    index_close(dataset->idx);
    free(dataset->path);
    free(dataset->kept);
    memset(dataset, 0, sizeof(*dataset));
}

/* What a look over the lengths finds. */
struct over_length {
    uint64_t n;       /* sequences over the limit */
    uint32_t longest; /* of all */
};

static struct over_length find_over_length(const struct length_index *idx, uint64_t limit)
{
    struct over_length over = {0};
    uint64_t row;

    for (row = 0; row < idx->count; row++) {
        over.n += idx->lengths[row] > limit;
        over.longest = idx->lengths[row] > over.longest ? idx->lengths[row] : over.longest;
    }
    return over;
}

/* Refuses what over_length does not allow. */
static int check_over_length(const struct dataset *dataset, enum skrull_over_length over_length,
                             const struct over_length *over, const char *where,
                             struct skrull_error *err)
{
    if (over_length == SKRULL_OVER_LENGTH_DROP) {
        return 0;
    }
    if (over_length == SKRULL_OVER_LENGTH_TRUNCATE) {
        return !dataset->idx->loss_tokens
                   ? 0
                   : skrull_error_set(
                         err, SKRULL_ERR_INVALID_ARGUMENT,
                         "data[%" PRIu32 "].over_length: truncate would cut %" PRIu64
                         " sequences of %.120s, whose loss-token counts would no longer hold: "
                         "drop them, or give the index without loss tokens",
                         dataset->place, over->n, dataset->path);
    }
    return skrull_error_because(err, SKRULL_ERR_INVALID_ARGUMENT, SKRULL_REASON_OVER_LENGTH,
                                dataset->limit,
                                "data[%" PRIu32 "].over_length: %" PRIu64 " of the %" PRIu64
                                " sequences of %.120s are longer than %" PRIu64
                                " tokens, the limit %.100s; the longest has %" PRIu32
                                ": set over_length to truncate or drop, or choose a larger "
                                "batch.bucket_tokens or parallel.cp",
                                dataset->place, over->n, dataset->idx->count, dataset->path,
                                dataset->limit, where, over->longest);
}

/* Marks the rows within the limit. */
static int keep_rows(struct dataset *dataset, struct skrull_error *err)
{
    const struct length_index *idx = dataset->idx;
    uint64_t row, n_words = idx->count / 64 + 1;

    dataset->kept = n_words > SIZE_MAX ? NULL : calloc((size_t)n_words, sizeof(*dataset->kept));
    if (!dataset->kept) {
        return no_memory(dataset->path, err);
    }
    for (row = 0; row < idx->count; row++) {
        if (idx->lengths[row] <= dataset->limit) {
            dataset->kept[row / 64] |= UINT64_C(1) << (row % 64);
        }
    }
    return 0;
}

/* Sums over the kept rows. The sum fits: 2^32 rows of 2^32 tokens would be 16 GiB of index. */
static int sum_rows(struct dataset *dataset, struct skrull_error *err)
{
    uint64_t row;
    uint32_t length;

    for (row = 0; row < dataset->idx->count; row++) {
        length = dataset_length(dataset, row);
        dataset->longest = length > dataset->longest ? length : dataset->longest;
        if (ckd_add(&dataset->tokens, dataset->tokens, length)) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "data[%" PRIu32 "].index: %.200s has more than 2^64 tokens",
                                    dataset->place, dataset->path);
        }
    }
    return 0;
}

int dataset_fit(struct dataset *dataset, enum skrull_over_length over_length, uint64_t limit,
                const char *where, struct skrull_error *err)
{
    struct over_length over = find_over_length(dataset->idx, limit);
    int result = 0;

    dataset->limit = limit;
    if (over.n) {
        result = check_over_length(dataset, over_length, &over, where, err);
    }
    if (result == 0 && over.n && over_length == SKRULL_OVER_LENGTH_DROP) {
        dataset->n_dropped = over.n;
        result = keep_rows(dataset, err);
    } else if (result == 0) {
        dataset->n_truncated = over.n;
    }
    dataset->n_kept = dataset->idx->count - dataset->n_dropped;
    return result ? result : sum_rows(dataset, err);
}

int dataset_check_unchanged(const struct dataset *dataset, struct skrull_error *err)
{
    struct stat now;
    const char *what = "was written to";

    if (stat(dataset->path, &now)) {
        what = errno == ENOENT || errno == ENOTDIR ? "is gone" : strerror(errno);
    } else if (is_same_file(&now, &dataset->found)) {
        return index_check_whole(dataset->idx, err);
    } else if (now.st_ino != dataset->found.st_ino || now.st_dev != dataset->found.st_dev) {
        what = "was replaced";
    }
    return skrull_error_because(
        err, SKRULL_ERR_FAILED_PRECONDITION, SKRULL_REASON_INDEX_CHANGED, 0,
        "data[%" PRIu32 "].index: %.200s %s after the job was opened: put the "
        "index back as it was and restart skrulld, or create a new job for the "
        "new one",
        dataset->place, dataset->path, what);
}

int dataset_check_info(const struct dataset *dataset, const struct skrull_index_info *info,
                       struct skrull_error *err)
{
    const struct {
        const char *what;
        uint64_t expected, found;
        bool is_hash;
    } facts[] = {
        {"rows", info->count, dataset->idx->count, false},
        {"tokens", info->tokens, dataset->idx->tokens, false},
        {"as payload hash", info->payload_hash, dataset->payload_hash, true},
    };
    size_t i;

    for (i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
        if (facts[i].expected != facts[i].found) {
            return skrull_error_because(
                err, SKRULL_ERR_FAILED_PRECONDITION, SKRULL_REASON_INDEX_CHANGED, 0,
                facts[i].is_hash
                    ? "data[%" PRIu32 "].index: %.200s has %016" PRIx64
                      " %s, the job was created with %016" PRIx64
                      ": put back the index that it was created with, or create a new job"
                    : "data[%" PRIu32 "].index: %.200s has %" PRIu64
                      " %s, the job was created with %" PRIu64
                      ": put back the index that it was created with, or create a new job",
                dataset->place, dataset->path, facts[i].found, facts[i].what, facts[i].expected);
        }
    }
    return 0;
}

uint32_t dataset_length(const struct dataset *dataset, uint64_t row)
{
    uint32_t length;

    if (row >= dataset->idx->count) {
        return 0;
    }
    length = dataset->idx->lengths[row];
    if (length <= dataset->limit) {
        return length;
    }
    return dataset->kept ? 0 : (uint32_t)dataset->limit;
}

uint32_t dataset_loss_tokens(const struct dataset *dataset, uint64_t row)
{
    const uint32_t *loss_tokens = dataset->idx->loss_tokens;

    return loss_tokens ? loss_tokens[row] : dataset_length(dataset, row);
}

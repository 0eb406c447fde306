/*
 * Opening of an index: what kind of file, which format (asked for, or by its first bytes), then the
 * format's own reader. Nothing here knows a layout. Thread-safe: an opened index never changes.
 */
#include "index/index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/map.h"
#include "index/byte_stream.h"
#include "index/format.h"

static const struct index_format *const formats[] = {
#define X(name) &format_##name,
#include "index/formats.def"
#undef X
};

#define N_FORMATS (sizeof(formats) / sizeof(formats[0]))

const char *index_short_path(const char *path)
{
    const size_t max = 200;
    size_t len = strlen(path);

    return len > max ? path + (len - max) : path;
}

static int by_name(const char *name, const char *path, const struct index_format **ret_format,
                   struct skrull_error *err)
{
    char known[128] = "auto";
    int status = detect_name(name, path, err);

    if (status < 0) {
        return status;
    }
    for (size_t i = 0; i < N_FORMATS; i++) {
        if (strcmp(formats[i]->name, name) == 0) {
            *ret_format = formats[i];
            return 0;
        }
        (void)strncat(known, ", ", sizeof(known) - strlen(known) - 1);
        (void)strncat(known, formats[i]->name, sizeof(known) - strlen(known) - 1);
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "%s: unknown format %.40s; this build reads %s", path, name, known);
}

/* Of the binary or of the text formats but text itself, the first that knows these bytes. */
static const struct index_format *find_match(const struct index_source *source, unsigned int takes)
{
    for (size_t i = 0; i + 1 < N_FORMATS; i++) {
        if ((formats[i]->takes & TAKES_TEXT) == takes && formats[i]->matches(source)) {
            return formats[i];
        }
    }
    return NULL;
}

static int by_content(const struct index_source *source, const struct index_format **ret_format,
                      struct skrull_error *err)
{
    const struct index_format *format = find_match(source, 0);
    int status = format ? 0 : detect_foreign(source, err);

    if (status < 0) {
        return status;
    }
    format = format ? format : find_match(source, TAKES_TEXT);
    *ret_format = format ? format : formats[N_FORMATS - 1];
    return 0;
}

/* Options that mean nothing to the format, and would be passed over in silence. */
static int check_options(const struct index_format *format, const struct index_source *source,
                         struct skrull_error *err)
{
    if (source->decoder && !(format->takes & TAKES_TEXT)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %s inside of %s; only text formats are read compressed: %s it "
                                "first",
                                source->path, format->name, source->decoder->name,
                                source->decoder->undo);
    }
    if (source->column && source->column[0] && !(format->takes & TAKES_COLUMN)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: column %.60s: %s has no columns; leave column empty",
                                source->path, source->column, format->name);
    }
    if (source->unit == SKRULL_UNIT_DOCUMENT && !(format->takes & TAKES_DOCUMENTS)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: unit document: %s knows sequences only; a Megatron .idx has "
                                "documents",
                                source->path, format->name);
    }
    return 0;
}

/* The stamp and the first bytes of a regular, non-empty file. */
static int source_open(int fd, const char *path, struct index_source *ret_source,
                       struct skrull_error *err)
{
    int status;

    ret_source->fd = fd;
    ret_source->path = index_short_path(path);
    status = file_stamp(fd, ret_source->path, &ret_source->stamp, err);
    if (status < 0) {
        return status;
    }
    if (!S_ISREG(ret_source->stamp.mode)) {
        return detect_not_a_file(fd, ret_source->path, ret_source->stamp.mode, err);
    }
    if (ret_source->stamp.size == 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: empty file (0 bytes); an index holds at least one length",
                                ret_source->path);
    }
    status = file_read_at(fd, ret_source->path, ret_source->head, sizeof(ret_source->head), 0,
                          &ret_source->head_size, err);
    if (status < 0) {
        return status;
    }
    ret_source->decoder = byte_stream_decoder(ret_source);
    return ret_source->decoder ? byte_stream_read_head(ret_source, err) : 0;
}

static int open_as(const struct index_format *format, const struct index_source *source,
                   struct length_index **ret_idx, struct skrull_error *err)
{
    struct index_file *file = calloc(1, sizeof(*file));
    int status;

    if (!file || !(file->path = strdup(source->path))) {
        free(file);
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "%s: out of memory",
                                source->path);
    }
    file->format = format;
    file->idx.format = format->name;
    status = format->open(source, file, err);
    if (status < 0) {
        index_close(&file->idx);
        return status;
    }
    *ret_idx = &file->idx;
    return 0;
}

/* What is wrong with a file, for programs. */
static int with_reason(int status, struct skrull_error *err)
{
    if (err && err->reason == SKRULL_REASON_NONE && status < 0 &&
        status != SKRULL_ERR_RESOURCE_EXHAUSTED) {
        err->reason = status == SKRULL_ERR_FAILED_PRECONDITION ? SKRULL_REASON_INDEX_CHANGED
                                                               : SKRULL_REASON_INDEX_INVALID;
    }
    return status;
}

static uint64_t or_default(uint64_t limit, uint64_t default_limit)
{
    return limit ? limit : default_limit;
}

int index_open(int fd, const char *path, const struct index_options *options,
               struct length_index **ret_idx, struct skrull_error *err)
{
    static const struct index_options defaults = {0};
    const struct index_options *o = options ? options : &defaults;
    const char *name = o->format ? o->format : "";
    const struct index_format *format = NULL;
    struct index_source source = {
        .column = o->column ? o->column : "",
        .unit = o->unit,
        .max_count = or_default(o->max_count, INDEX_MAX_COUNT),
        .max_decoded = or_default(o->max_decoded, INDEX_MAX_DECODED),
    };
    int status = source_open(fd, path, &source, err);

    if (status < 0) {
        return with_reason(status, err);
    }
    if (name[0] == '\0' || strcmp(name, "auto") == 0) {
        status = by_content(&source, &format, err);
    } else {
        source.is_forced = 1;
        status = by_name(name, source.path, &format, err);
    }
    status = status < 0 ? status : check_options(format, &source, err);
    status = status < 0 ? status : open_as(format, &source, ret_idx, err);
    return with_reason(status, err);
}

void index_close(struct length_index *idx)
{
    if (idx) {
        struct index_file *file = (struct index_file *)idx;

        free(file->path);
        free(file->parsed);
        free(file->parsed_loss);
        map_close(file->idx.map, file->map_size);
        free(file);
    }
}

int index_refuse_empty(const char *path, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "%s: holds no sequence; an index holds at least one length", path);
}

int index_check_whole(const struct length_index *idx, struct skrull_error *err)
{
    return map_is_whole(idx->map)
               ? 0
               : skrull_error_because(
                     err, SKRULL_ERR_DATA_LOSS, SKRULL_REASON_INDEX_CHANGED, 0,
                     "the index was truncated while it was in use: write it again, and "
                     "replace it by rename");
}

int index_verify(const struct length_index *idx, uint64_t *ret_payload_hash,
                 struct skrull_error *err)
{
    const struct index_file *file = (const struct index_file *)idx;

    uint64_t hash = 0;
    int status = file->format->verify(file, &hash, err);

    status = status < 0 ? status : index_check_whole(idx, err);
    if (status < 0) {
        return with_reason(skrull_error_prefix(err, status, "%s", file->path), err);
    }
    *ret_payload_hash = hash;
    return 0;
}

/*
 * Reading of a source: what is asked for or an error, and has somebody written to it meanwhile.
 * Thread-safe: no state.
 */
#include "index/format.h"

#include "base/file.h"

static int changed(const struct index_source *source, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_FAILED_PRECONDITION,
                            "%s: changed while it was read; try again when its writer is done, and "
                            "replace indexes by rename",
                            source->path);
}

int index_source_read(const struct index_source *source, void *bytes, size_t size, uint64_t offset,
                      struct skrull_error *err)
{
    size_t got = 0;
    int status = file_read_at(source->fd, source->path, bytes, size, offset, &got, err);

    return status == 0 && got < size ? changed(source, err) : status;
}

int index_source_check_unchanged(const struct index_source *source, struct skrull_error *err)
{
    struct file_stamp now;
    int status = file_stamp(source->fd, source->path, &now, err);

    return status == 0 && !file_stamp_equal(&now, &source->stamp) ? changed(source, err) : status;
}

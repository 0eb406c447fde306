/* JSON Lines: an object a line. What only looks so, an object over several lines, is read as JSON
 * where the format was not asked for. Thread-safe. */
#include "index/json.h"
#include "index/payload.h"

static int jsonl_matches(const struct index_source *source)
{
    return json_first_byte(source) == '{';
}

static int jsonl_open(const struct index_source *source, struct index_file *ret_file,
                      struct skrull_error *err)
{
    return json_read(source, source->is_forced ? JSON_LINES : JSON_EITHER, ret_file, err);
}

static int jsonl_verify(const struct index_file *file, uint64_t *ret_hash, struct skrull_error *err)
{
    return payload_hash(&file->idx, ret_hash, err);
}

const struct index_format format_jsonl = {
    .name = "jsonl",
    .summary = "JSON Lines: a record a line",
    .takes = TAKES_TEXT | TAKES_COLUMN,
    .matches = jsonl_matches,
    .open = jsonl_open,
    .verify = jsonl_verify,
};

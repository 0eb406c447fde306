/* JSON documents: one array, or one object of lists. Thread-safe. */
#include "index/json.h"

#include <string.h>

#include "index/payload.h"

/* By content, or by name where the content says nothing: a lone number is JSON, too, and no index.
 */
static int json_matches(const struct index_source *source)
{
    const char first = json_first_byte(source);
    const size_t len = strlen(source->path);

    return first == '[' ||
           (first != '{' && len > 5 && strcmp(source->path + len - 5, ".json") == 0);
}

static int json_open_document(const struct index_source *source, struct index_file *ret_file,
                              struct skrull_error *err)
{
    return json_read(source, JSON_DOCUMENT, ret_file, err);
}

static int json_verify(const struct index_file *file, uint64_t *ret_hash, struct skrull_error *err)
{
    return payload_hash(&file->idx, ret_hash, err);
}

const struct index_format format_json = {
    .name = "json",
    .summary = "JSON: an array of lengths or records, an object of lists",
    .takes = TAKES_TEXT | TAKES_COLUMN,
    .matches = json_matches,
    .open = json_open_document,
    .verify = json_verify,
};

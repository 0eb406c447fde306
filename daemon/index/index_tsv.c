/* Tables whose fields stand apart by tabs. Numbers apart by blanks and tabs are text. Thread-safe.
 */
#include "index/csv.h"
#include "index/payload.h"

static int tsv_matches(const struct index_source *source)
{
    return csv_sniff(source) == '\t' &&
           (!csv_is_numbers(source) || (source->column && source->column[0]));
}

static int tsv_open(const struct index_source *source, struct index_file *ret_file,
                    struct skrull_error *err)
{
    return csv_open(source, '\t', ret_file, err);
}

static int tsv_verify(const struct index_file *file, uint64_t *ret_hash, struct skrull_error *err)
{
    return payload_hash(&file->idx, ret_hash, err);
}

const struct index_format format_tsv = {
    .name = "tsv",
    .summary = "a table, tab-separated",
    .takes = TAKES_TEXT | TAKES_COLUMN,
    .matches = tsv_matches,
    .open = tsv_open,
    .verify = tsv_verify,
};

/* Tables whose fields stand apart by commas or semicolons. Thread-safe. */
#include "index/csv.h"
#include "index/payload.h"

static int csv_matches(const struct index_source *source)
{
    int delimiter = csv_sniff(source);

    return delimiter == ',' || delimiter == ';' || (delimiter == '\0' && csv_is_one_column(source));
}

static int csv_open_sniffed(const struct index_source *source, struct index_file *ret_file,
                            struct skrull_error *err)
{
    int delimiter = csv_sniff(source);

    return csv_open(source, delimiter > 0 ? (char)delimiter : ',', ret_file, err);
}

static int csv_verify(const struct index_file *file, uint64_t *ret_hash, struct skrull_error *err)
{
    return payload_hash(&file->idx, ret_hash, err);
}

const struct index_format format_csv = {
    .name = "csv",
    .summary = "a table, comma- or semicolon-separated",
    .takes = TAKES_TEXT | TAKES_COLUMN,
    .matches = csv_matches,
    .open = csv_open_sniffed,
    .verify = csv_verify,
};

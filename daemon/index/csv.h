/* Inside of the index stage: tables, for index_csv.c and index_tsv.c. */
#pragma once

#include <skrull/error.h>

#include "index/format.h"

/* The delimiter of the first line, by number: ',', ';' or '\t'; '\0': it has none. NUL and other
 * control bytes, `#` and `<` at the beginning: -1, no table. */
int csv_sniff(const struct index_source *source);

/* 1: the first line is numbers and blanks, and so may be text. */
int csv_is_numbers(const struct index_source *source);

/* 1: the first line is one name that tells a length, or that the user gave. */
int csv_is_one_column(const struct index_source *source);

/* Reads the table; index_format's open. */
int csv_open(const struct index_source *source, char delimiter, struct index_file *ret_file,
             struct skrull_error *err);

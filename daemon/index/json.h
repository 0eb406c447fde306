/* Inside of the index stage: JSON in its two shapes, for index_json.c and index_jsonl.c. */
#pragma once

#include <skrull/error.h>

#include "index/format.h"

enum json_shape {
    JSON_LINES,    /* an object a line */
    JSON_DOCUMENT, /* one array or object */
    JSON_EITHER    /* an object, or one a line: by what follows it */
};

/* The first byte that is no blank, of the file's first bytes; '\0': none. */
char json_first_byte(const struct index_source *source);

/* Reads the file; index_format's open. The format it turns out to be is in `ret_file`. */
int json_read(const struct index_source *source, enum json_shape shape, struct index_file *ret_file,
              struct skrull_error *err);

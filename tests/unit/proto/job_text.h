/* Makes job files for tests: the required keys, and what a test gives instead or beside them. */
#pragma once

#include <stddef.h>

/* A key by its path ("batch.align"; of the one data set "data.weight") and its value as YAML; value
 * NULL leaves a required key out. A list of these ends with path NULL. */
struct given {
    const char *path, *value;
};

/* "micro_batches" as "microBatches"; dots stay. */
void job_text_camel(const char *snake, char *ret, size_t size);

/* A job file, one key a line, malloc'd. `given` may be NULL; its paths are written as they stand,
 * so that they may be in lowerCamelCase. */
char *job_text_make(const struct given *given);

/* The line (from 1) of the one key whose last name is `name`; 0: none. */
size_t job_text_line(const char *text, const char *name);

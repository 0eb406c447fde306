/* One value of a job file into the struct. */
#pragma once

#include <skrull/error.h>

struct arena;
struct job_field;

/* Reads `text` as the field's kind, checks it and stores it in `base` (the job or data set; a copy
 * of a TEXT lives in `arena`). INVALID_ARGUMENT: the message begins with `path`. */
int job_scalar_store(struct arena *arena, const struct job_field *field, void *base,
                     const char *path, const char *text, struct skrull_error *err);

/* Reads a job file, YAML or JSON (which is YAML, so that lines are known). */
#pragma once

#include <stddef.h>

#include <skrull/job.h>

struct arena;

#define JOB_FILE_MAX_BYTES ((size_t)1 << 20)

/*
 * Parses `text` ([len] bytes) into a completed, checked job in `arena`. Keys in snake_case or
 * lowerCamelCase; integers may be quoted; a word may be the enum's name; output-only keys are
 * ignored. INVALID_ARGUMENT names key, line and what is allowed ("line 7: batch.align: ...").
 */
int job_file_parse(struct arena *arena, const char *text, size_t len, struct skrull_job **ret_job,
                   struct skrull_error *err);

/* The same for an update of a job: what is given, each key checked, and neither defaults nor the
 * rules of a whole job. */
int job_file_parse_given(struct arena *arena, const char *text, size_t len,
                         struct skrull_job **ret_job, struct skrull_error *err);

/* Reads and parses a file, standard input where the path is "-". NOT_FOUND where there is none. */
int job_file_read(struct arena *arena, const char *path, struct skrull_job **ret_job,
                  struct skrull_error *err);
int job_file_read_given(struct arena *arena, const char *path, struct skrull_job **ret_job,
                        struct skrull_error *err);

/* The same with a check of the completed job by what knows more than this reader: where its message
 * begins with a key, that key's line is put before it, as before the reader's own. */
typedef int (*job_file_check)(const struct skrull_job *job, struct skrull_error *err);
int job_file_read_checked(struct arena *arena, const char *path, job_file_check check,
                          struct skrull_job **ret_job, struct skrull_error *err);

/*
 * The daemon's log: one event a line on standard error, written at the boundary (rpc/, job's, main)
 * only; stages return errors. Text is "TIME LEVEL event key=value ...", values that are not plain
 * words are quoted; JSON is one object a line. Any thread may log, and any may change level and
 * format.
 *
 *     log_event(LOG_LEVEL_INFO, "job_created", LOG_TEXT("job", name), LOG_U64("steps", steps));
 */
#pragma once

#include <stdbool.h>

#include "base/log_line.h"

/* Initially info and text. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
void log_set_format(enum log_format format);

/* The level of a word (error, warn, info, debug), the format of one (text, json): true. */
bool log_level_parse(const char *word, enum log_level *ret_level);
bool log_format_parse(const char *word, enum log_format *ret_format);

/* Logs `event` (lower case, no spaces) with at least one field. */
#define log_event(level, event, ...)                                                               \
    log_write((level), (event), (const struct log_field[]){__VA_ARGS__, {0}})

/* Writes one line by one write(2), where `level` is logged. `fields` end with {0}. Loses a line
 * rather than fail; keeps errno. */
void log_write(enum log_level level, const char *event, const struct log_field *fields);

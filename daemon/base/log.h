/*
 * The daemon's log: one event a line on standard error, written at the boundary (rpc/, main) only.
 * Any thread may log. Text is "TIME LEVEL event key=value ...", values that are not plain words are
 * quoted; JSON is one object a line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* Initially info and text. */
void log_set_level(enum log_level level);
void log_set_format(enum log_format format);

/* The level of a word (error, warn, info, debug): true. */
bool log_level_parse(const char *word, enum log_level *ret_level);

struct log_field {
    const char *key;  /* NULL ends the list */
    const char *text; /* NULL: the number */
    uint64_t number;
};

/* clang-format off */
#define LOG_TEXT(key, text) {(key), (text), 0}
#define LOG_U64(key, number) {(key), 0, (number)}
/* clang-format on */

/* Logs `event` (lower case, no spaces) with at least one field:
 * log_event(LOG_LEVEL_INFO, "job_created", LOG_TEXT("job", name), LOG_U64("steps", steps)). */
#define log_event(level, event, ...)                                                               \
    log_write((level), (event), (const struct log_field[]){__VA_ARGS__, {0}})

void log_write(enum log_level level, const char *event, const struct log_field *fields);

/* One line without its end into `line` ([size], NUL-terminated, cut where it does not fit): what
 * log_write writes. */
void log_render(enum log_format format, int64_t real_ns, enum log_level level, const char *event,
                const struct log_field *fields, char *line, uint32_t size);

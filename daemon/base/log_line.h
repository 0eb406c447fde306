/* A log line as bytes: no clock, no output, so that it can be tested. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR = 0, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT = 0, LOG_FORMAT_JSON };

/* Whether a line fits is settled here: longer ones are cut, and stay one whole line. */
#define LOG_LINE_SIZE 4096

enum log_type { LOG_TYPE_END = 0, LOG_TYPE_TEXT, LOG_TYPE_NUMBER };

/* A key (lower_snake_case, a literal) and its value; {0} ends a list. */
struct log_field {
    const char *key;
    enum log_type type;
    const char *text; /* any bytes; NULL is written as "" */
    uint64_t number;
};

/* clang-format off */
#define LOG_TEXT(key, text) {(key), LOG_TYPE_TEXT, (text), 0}
#define LOG_U64(key, number) {(key), LOG_TYPE_NUMBER, NULL, (number)}
/* clang-format on */

/* "error", "warn", "info", "debug"; static. */
const char *log_level_name(enum log_level level);

struct log_entry {
    int64_t real_ns; /* since 1970 */
    enum log_level level;
    const char *event;
    const struct log_field *fields; /* up to {0} */
};

/* Writes the line with its '\n' and without a NUL into `ret_line`; returns its length. */
size_t log_line(enum log_format format, const struct log_entry *entry,
                char ret_line[LOG_LINE_SIZE]);

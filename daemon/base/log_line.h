/* A log line as bytes: no clock, no output, so that it can be tested. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR = 0, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT = 0, LOG_FORMAT_JSON };

/* Whether a line fits is settled here: longer ones are cut, and stay one whole line. */
#define LOG_LINE_SIZE 4096

enum log_type { LOG_TYPE_NONE = 0, LOG_TYPE_STR, LOG_TYPE_U64, LOG_TYPE_I64 };

/* A key (lower_snake_case, a literal) and its value. */
struct log_field {
    const char *key;
    enum log_type type;
    union {
        const char *str; /* any bytes; NULL is written as "" */
        uint64_t u64;
        int64_t i64;
    } value;
};

#define LOG_STR(name, text) ((struct log_field){(name), LOG_TYPE_STR, {.str = (text)}})
#define LOG_U64(name, number) ((struct log_field){(name), LOG_TYPE_U64, {.u64 = (number)}})
#define LOG_I64(name, number) ((struct log_field){(name), LOG_TYPE_I64, {.i64 = (number)}})
#define LOG_NONE ((struct log_field){NULL, LOG_TYPE_NONE, {.str = NULL}})

/* "error", "warn", "info", "debug"; static. */
const char *log_level_name(enum log_level level);

struct log_entry {
    int64_t real_ns; /* since 1970 */
    enum log_level level;
    const char *event;
    const struct log_field *fields; /* up to LOG_NONE */
};

/* Writes the line with its '\n' and without a NUL into `ret_line`; returns its length. */
size_t log_line(enum log_format format, const struct log_entry *entry,
                char ret_line[LOG_LINE_SIZE]);

/*
 * The daemon's log: one event a line, `event key=value ...` or one JSON object, to standard error.
 * Only main, rpc/ and the boundary of jobs write to it; stages return errors. Thread-safe.
 *
 *     log_info("listening", LOG_STR("address", address), LOG_U64("port", port));
 *     log_info("stopped", LOG_NONE);
 */
#pragma once

#include <stdint.h>

#include <skrull/error.h>

#include "base/log_line.h"

/* What is logged from now on, info at first. May be called at any time, by any thread. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* Text at first. */
void log_set_format(enum log_format format);

/* The level, format of a word: "warn", "json". INVALID_ARGUMENT names the word and what is allowed.
 */
int log_parse_level(const char *word, enum log_level *ret_level, struct skrull_error *err);
int log_parse_format(const char *word, enum log_format *ret_format, struct skrull_error *err);

/* Writes one line by one write(2), where `level` is logged. `fields` end with LOG_NONE. Loses a
 * line rather than fail or wait for a full pipe. */
void log_event(enum log_level level, const char *event, const struct log_field *fields);

#define LOG_FIELDS(...)                                                                            \
    (const struct log_field[])                                                                     \
    {                                                                                              \
        __VA_ARGS__, LOG_NONE                                                                      \
    }
#define log_error(event, ...) log_event(LOG_LEVEL_ERROR, (event), LOG_FIELDS(__VA_ARGS__))
#define log_warn(event, ...) log_event(LOG_LEVEL_WARN, (event), LOG_FIELDS(__VA_ARGS__))
#define log_info(event, ...) log_event(LOG_LEVEL_INFO, (event), LOG_FIELDS(__VA_ARGS__))
#define log_debug(event, ...) log_event(LOG_LEVEL_DEBUG, (event), LOG_FIELDS(__VA_ARGS__))

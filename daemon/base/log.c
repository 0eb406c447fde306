/*
 * Writes log lines to standard error. The level and the format are the only state of the daemon
 * that has no owner; both are atomic, so any thread may log while SIGHUP changes the level. A line
 * goes out in one write(2): lines of several threads never mix in a pipe (up to PIPE_BUF, 4,096
 * bytes, a line's limit).
 */
#include "base/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static atomic_int current_level = LOG_LEVEL_INFO;
static atomic_int current_format = LOG_FORMAT_TEXT;

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

enum log_level log_get_level(void)
{
    return (enum log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

void log_set_format(enum log_format format)
{
    atomic_store_explicit(&current_format, (int)format, memory_order_relaxed);
}

bool log_level_parse(const char *word, enum log_level *ret_level)
{
    for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_DEBUG; level++) {
        if (strcmp(word, log_level_name((enum log_level)level)) == 0) {
            *ret_level = (enum log_level)level;
            return true;
        }
    }
    return false;
}

bool log_format_parse(const char *word, enum log_format *ret_format)
{
    const bool is_json = strcmp(word, "json") == 0;

    if (!is_json && strcmp(word, "text") != 0) {
        return false;
    }
    *ret_format = is_json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT;
    return true;
}

void log_write(enum log_level level, const char *event, const struct log_field *fields)
{
    const int before = errno;
    struct log_entry entry = {clock_real_ns(), level, event, fields};
    char line[LOG_LINE_SIZE];
    size_t len;
    ssize_t n;

    if (level > log_get_level()) {
        return;
    }
    len = log_line((enum log_format)atomic_load_explicit(&current_format, memory_order_relaxed),
                   &entry, line);
    do {
        n = write(STDERR_FILENO, line, len);
    } while (n < 0 && errno == EINTR);
    errno = before; /* a caller may log before it looks */
}

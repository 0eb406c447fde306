/*
 * The log. A line is rendered into a buffer on the stack and leaves in one write, so lines of
 * several threads do not mix. Level and format are the only state: two atomics.
 */
#include "base/log.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LINE_BYTES 2048

static atomic_int log_level_now = LOG_LEVEL_INFO;
static atomic_int log_format_now = LOG_FORMAT_TEXT;

static const char *const level_words[] = {"error", "warn", "info", "debug"};

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&log_level_now, (int)level, memory_order_relaxed);
}

void log_set_format(enum log_format format)
{
    atomic_store_explicit(&log_format_now, (int)format, memory_order_relaxed);
}

bool log_level_parse(const char *word, enum log_level *ret_level)
{
    for (size_t i = 0; i < sizeof(level_words) / sizeof(level_words[0]); i++) {
        if (strcmp(word, level_words[i]) == 0) {
            *ret_level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

/* A line in the making; what does not fit is cut. */
struct line {
    char *text;
    size_t size, len;
};

static void put(struct line *line, char byte)
{
    if (line->len + 1 < line->size) {
        line->text[line->len++] = byte;
        line->text[line->len] = '\0';
    }
}

static void put_text(struct line *line, const char *text)
{
    for (; *text != '\0'; text++) {
        put(line, *text);
    }
}

static void put_number(struct line *line, uint64_t number)
{
    char digits[24];

    (void)snprintf(digits, sizeof(digits), "%" PRIu64, number);
    put_text(line, digits);
}

/* As a JSON string; bytes above ASCII pass as they are. */
static void put_quoted(struct line *line, const char *text)
{
    char escape[8];

    put(line, '"');
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;

        if (byte == '"' || byte == '\\') {
            put(line, '\\');
            put(line, *text);
        } else if (byte < 0x20 || byte == 0x7f) {
            (void)snprintf(escape, sizeof(escape), "\\u%04x", byte);
            put_text(line, escape);
        } else {
            put(line, *text);
        }
    }
    put(line, '"');
}

static bool is_plain(const char *text)
{
    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;

        if (byte <= 0x20 || byte == 0x7f || byte == '"' || byte == '\\' || byte == '=') {
            return false;
        }
    }
    return true;
}

static void put_time(struct line *line, int64_t real_ns)
{
    time_t seconds = (time_t)(real_ns / 1000000000);
    char text[40];
    struct tm parts;
    size_t len;

    if (!gmtime_r(&seconds, &parts)) {
        put(line, '-');
        return;
    }
    len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(text + len, sizeof(text) - len, ".%03dZ", (int)(real_ns / 1000000 % 1000));
    put_text(line, text);
}

static void render_text(struct line *line, int64_t real_ns, enum log_level level, const char *event,
                        const struct log_field *fields)
{
    put_time(line, real_ns);
    put(line, ' ');
    put_text(line, level_words[level]);
    put(line, ' ');
    put_text(line, event);
    for (; fields->key; fields++) {
        put(line, ' ');
        put_text(line, fields->key);
        put(line, '=');
        if (!fields->text) {
            put_number(line, fields->number);
        } else if (is_plain(fields->text)) {
            put_text(line, fields->text);
        } else {
            put_quoted(line, fields->text);
        }
    }
}

static void render_json(struct line *line, int64_t real_ns, enum log_level level, const char *event,
                        const struct log_field *fields)
{
    put_text(line, "{\"time\":\"");
    put_time(line, real_ns);
    put_text(line, "\",\"level\":\"");
    put_text(line, level_words[level]);
    put_text(line, "\",\"event\":");
    put_quoted(line, event);
    for (; fields->key; fields++) {
        put(line, ',');
        put_quoted(line, fields->key);
        put(line, ':');
        if (fields->text) {
            put_quoted(line, fields->text);
        } else {
            put_number(line, fields->number);
        }
    }
    put(line, '}');
}

void log_render(enum log_format format, int64_t real_ns, enum log_level level, const char *event,
                const struct log_field *fields, char *line, uint32_t size)
{
    struct line out = {.text = line, .size = size};

    if (size == 0) {
        return;
    }
    line[0] = '\0';
    if (format == LOG_FORMAT_JSON) {
        render_json(&out, real_ns, level, event, fields);
    } else {
        render_text(&out, real_ns, level, event, fields);
    }
}

void log_write(enum log_level level, const char *event, const struct log_field *fields)
{
    char line[LINE_BYTES + 1];
    size_t len;

    if ((int)level > atomic_load_explicit(&log_level_now, memory_order_relaxed)) {
        return;
    }
    log_render((enum log_format)atomic_load_explicit(&log_format_now, memory_order_relaxed),
               clock_real_ns(), level, event, fields, line, LINE_BYTES);
    len = strlen(line);
    line[len] = '\n';
    /* Nobody can be told that the log is broken. */
    if (write(STDERR_FILENO, line, len + 1) < 0) {
        return;
    }
}

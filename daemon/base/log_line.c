/*
 * Log lines, two ways. Text: `2026-01-02T03:04:05.678Z level event key=value`, a value in quotes
 * where it would not read as one word. JSON: the same as one object. Values may hold anything a
 * client sent, so control bytes are escaped (no value can forge a line) and broken UTF-8 is
 * replaced. Thread-safe.
 */
#include "base/log_line.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Room kept for what closes a cut line: the mark, the quote, the brace, the line end. */
#define CLOSING 16

struct line {
    char *text;
    size_t len;
    bool is_full; /* nothing but the end is written any more */
};

const char *log_level_name(enum log_level level)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};

    return names[level];
}

/* All of the piece, or nothing from here on. */
static void put(struct line *line, const char *piece, size_t len)
{
    if (line->is_full || line->len + len > LOG_LINE_SIZE - CLOSING) {
        line->is_full = true;
        return;
    }
    memcpy(line->text + line->len, piece, len);
    line->len += len;
}

static void put_text(struct line *line, const char *text)
{
    put(line, text, strlen(text));
}

/* What closes things, into the room kept for it. */
static void put_closing(struct line *line, const char *text)
{
    size_t len = strlen(text);

    memcpy(line->text + line->len, text, len);
    line->len += len;
}

/* Bytes of the UTF-8 sequence at `at`, 1 to 4; 0: broken (RFC 3629, no overlong forms, no
 * surrogates). */
static size_t utf8_length(const unsigned char *at)
{
    size_t len = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    unsigned char low = 0x80, high = 0xbf;

    if (at[0] > 0xf4) {
        return 0;
    }
    if (at[0] == 0xe0) {
        low = 0xa0;
    } else if (at[0] == 0xed) {
        high = 0x9f;
    } else if (at[0] == 0xf0) {
        low = 0x90;
    } else if (at[0] == 0xf4) {
        high = 0x8f;
    }
    for (size_t i = 1; i < len; i++) {
        if (at[i] < low || at[i] > high) {
            return 0;
        }
        low = 0x80;
        high = 0xbf;
    }
    return len;
}

/* One character, escaped where it must be; returns the bytes it took. */
static size_t put_character(struct line *line, const unsigned char *at)
{
    size_t len = utf8_length(at);
    char escape[8];

    if (len == 0) {
        put_text(line, "\xef\xbf\xbd"); /* U+FFFD */
        return 1;
    }
    if (*at == '\n') {
        put_text(line, "\\n");
    } else if (*at == '"' || *at == '\\') {
        escape[0] = '\\';
        escape[1] = (char)*at;
        put(line, escape, 2);
    } else if (*at < 0x20 || *at == 0x7f) {
        (void)snprintf(escape, sizeof(escape), "\\u%04x", *at);
        put_text(line, escape);
    } else {
        put(line, (const char *)at, len);
    }
    return len;
}

static void put_quoted(struct line *line, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    put_text(line, "\"");
    if (line->is_full) {
        return;
    }
    while (*at && !line->is_full) {
        at += put_character(line, at);
    }
    put_closing(line, line->is_full ? "...\"" : "\"");
}

/* 1: the value reads as one word without quotes. */
static bool is_word(const char *text)
{
    if (*text == '\0') {
        return false;
    }
    for (const char *at = text; *at; at++) {
        if (*at <= ' ' || *at > '~' || *at == '"' || *at == '=' || *at == '\\') {
            return false;
        }
    }
    return true;
}

static void put_value(struct line *line, enum log_format format, const struct log_field *field)
{
    const char *text = field->text ? field->text : "";
    char number[24];

    if (field->type == LOG_TYPE_NUMBER) {
        (void)snprintf(number, sizeof(number), "%" PRIu64, field->number);
        put_text(line, number);
        return;
    }
    if (format == LOG_FORMAT_TEXT && is_word(text) && strlen(text) < LOG_LINE_SIZE / 2) {
        put_text(line, text);
    } else {
        put_quoted(line, text);
    }
}

/* A field, whole or (a long string) cut inside its quotes, or not at all. */
static void put_field(struct line *line, enum log_format format, const struct log_field *field)
{
    size_t before = line->len;

    put_text(line, format == LOG_FORMAT_JSON ? ",\"" : " ");
    put_text(line, field->key);
    put_text(line, format == LOG_FORMAT_JSON ? "\":" : "=");
    if (!line->is_full) {
        size_t value = line->len;

        put_value(line, format, field);
        if (line->len > value) {
            return;
        }
    }
    line->len = before;
}

static void put_time(struct line *line, int64_t real_ns)
{
    time_t seconds = (time_t)(real_ns / 1000000000);
    int64_t ms = real_ns % 1000000000 / 1000000;
    char text[40];
    struct tm parts;

    if (!gmtime_r(&seconds, &parts) ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts) == 0) {
        put_text(line, "?");
        return;
    }
    put_text(line, text);
    (void)snprintf(text, sizeof(text), ".%03dZ", (int)ms);
    put_text(line, text);
}

size_t log_line(enum log_format format, const struct log_entry *entry, char ret_line[LOG_LINE_SIZE])
{
    const bool is_json = format == LOG_FORMAT_JSON;
    struct line line = {.text = ret_line};

    put_text(&line, is_json ? "{\"time\":\"" : "");
    put_time(&line, entry->real_ns);
    put_text(&line, is_json ? "\",\"level\":\"" : " ");
    put_text(&line, log_level_name(entry->level));
    put_text(&line, is_json ? "\",\"event\":\"" : " ");
    put_text(&line, entry->event);
    put_text(&line, is_json ? "\"" : "");
    for (const struct log_field *field = entry->fields; field->type != LOG_TYPE_END; field++) {
        put_field(&line, format, field);
    }
    put_closing(&line, is_json ? "}\n" : "\n");
    return line.len;
}

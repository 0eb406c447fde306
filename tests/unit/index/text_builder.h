/* Long texts for tests, piece by piece. CMocka's headers come first. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text_builder {
    char *at; /* [room], NUL-terminated; owned */
    size_t len, room;
};

static inline struct text_builder text_builder_of(size_t room)
{
    struct text_builder text = {calloc(1, room), 0, room};

    assert_non_null(text.at);
    return text;
}

static inline void add_bytes(struct text_builder *text, const char *bytes, size_t size)
{
    assert_true(size < text->room - text->len);
    memcpy(text->at + text->len, bytes, size);
    text->len += size;
}

static inline void add_times(struct text_builder *text, char byte, size_t n)
{
    assert_true(n < text->room - text->len);
    memset(text->at + text->len, byte, n);
    text->len += n;
}

__attribute__((format(printf, 2, 3))) static inline void add_text(struct text_builder *text,
                                                                  const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(text->at + text->len, text->room - text->len, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < text->room - text->len);
    text->len += (size_t)n;
}

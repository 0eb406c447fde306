/*
 * Strings of JSON: escapes, and UTF-8 that is checked (RFC 3629). A surrogate without its other
 * half, which Python writes for broken text, counts as U+FFFD. Thread-safe.
 */
#include "index/json_reader.h"

#include <inttypes.h>
#include <string.h>

#define REPLACEMENT 0xfffdu

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the first of eight bytes is taken for the lowest"
#endif

/* The same byte eight times. */
#define ONES UINT64_C(0x0101010101010101)
#define TOPS UINT64_C(0x8080808080808080)

static void keep(struct json_text *text, const void *bytes, size_t size)
{
    if (text) {
        size_t used = text->len < JSON_TEXT_SIZE ? text->len : JSON_TEXT_SIZE;
        size_t room = JSON_TEXT_SIZE - used;

        memcpy(text->bytes + used, bytes, size < room ? size : room);
        text->len += size;
    }
}

static void keep_character(struct json_text *text, uint32_t c)
{
    unsigned char bytes[4];
    size_t n;

    if (c < 0x80) {
        bytes[0] = (unsigned char)c;
        n = 1;
    } else if (c < 0x800) {
        bytes[0] = (unsigned char)(0xc0 | c >> 6);
        n = 2;
    } else if (c < 0x10000) {
        bytes[0] = (unsigned char)(0xe0 | c >> 12);
        n = 3;
    } else {
        bytes[0] = (unsigned char)(0xf0 | c >> 18);
        n = 4;
    }
    for (size_t i = 1; i < n; i++) {
        bytes[i] = (unsigned char)(0x80 | (c >> (6 * (n - 1 - i)) & 0x3f));
    }
    keep(text, bytes, n);
}

/* In the high bits: which of 8 bytes is under 0x20, a quote, a backslash or over 0x7f. The first
 * that is marked is right; later ones may be marked by a borrow. */
static inline uint64_t special_bytes(uint64_t word)
{
    uint64_t quote = word ^ ONES * '"', backslash = word ^ ONES * '\\';

    return (word | (word - ONES * 0x20) | (quote - ONES) | (backslash - ONES)) & TOPS;
}

/* Up to the first byte that is special, or the end. */
static const unsigned char *find_special(const unsigned char *at, const unsigned char *end)
{
    while (end - at >= 8) {
        uint64_t word, marks;

        memcpy(&word, at, sizeof(word));
        marks = special_bytes(word);
        if (marks) {
            return at + __builtin_ctzll(marks) / 8;
        }
        at += 8;
    }
    while (at < end && *at >= 0x20 && *at < 0x80 && *at != '"' && *at != '\\') {
        at++;
    }
    return at;
}

static int refuse_end(const struct json_reader *reader)
{
    if (reader->cursor.status < 0) {
        return reader->cursor.status;
    }
    return skrull_error_set(reader->err, SKRULL_ERR_DATA_LOSS,
                            "%s: line %" PRIu64 ", record %" PRIu64
                            ": truncated: the file ends within a string; copy or write it again",
                            reader->source->path, reader->line, reader->record);
}

/* Four hexadecimal digits; negative: none. */
static int take_hex(struct json_reader *reader, uint32_t *ret_value)
{
    uint32_t value = 0;

    for (int i = 0; i < 4; i++) {
        int byte = cursor_peek(&reader->cursor);
        uint32_t digit;

        if (byte >= '0' && byte <= '9') {
            digit = (uint32_t)(byte - '0');
        } else if ((byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F')) {
            digit = (uint32_t)((byte | 0x20) - 'a' + 10);
        } else if (byte == CURSOR_END) {
            return refuse_end(reader);
        } else {
            return json_refuse(reader, "\\u without four hexadecimal digits in a string");
        }
        value = value << 4 | digit;
        reader->cursor.at++;
    }
    *ret_value = value;
    return 0;
}

/* Behind \u. A high surrogate takes the low one that follows with it. */
static int take_unicode(struct json_reader *reader, struct json_text *text)
{
    uint32_t c = 0, low = 0;
    int status = take_hex(reader, &c);

    while (status == 0 && c >= 0xd800 && c < 0xdc00) {
        if (cursor_peek(&reader->cursor) != '\\') {
            c = REPLACEMENT;
            break;
        }
        reader->cursor.at++;
        if (cursor_peek(&reader->cursor) != 'u') {
            keep_character(text, REPLACEMENT);
            return 1; /* a backslash has been taken */
        }
        reader->cursor.at++;
        status = take_hex(reader, &low);
        if (low >= 0xdc00 && low < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        } else {
            keep_character(text, REPLACEMENT);
            c = low;
        }
    }
    if (status == 0) {
        keep_character(text, c >= 0xd800 && c < 0xe000 ? REPLACEMENT : c);
    }
    return status;
}

/* Behind the backslash. */
static int take_escape(struct json_reader *reader, struct json_text *text)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int status;

    do {
        int byte = cursor_peek(&reader->cursor);
        const char *found = byte > 0 ? strchr(from, byte) : NULL;

        if (byte == CURSOR_END) {
            return refuse_end(reader);
        }
        if (!found && byte != 'u') {
            return json_refuse(reader, "an unknown escape in a string");
        }
        reader->cursor.at++;
        if (found) {
            keep(text, &to[found - from], 1);
            return 0;
        }
        status = take_unicode(reader, text);
    } while (status > 0);
    return status;
}

/* A character over 0x7f: its first byte is at hand. */
static int take_multibyte(struct json_reader *reader, struct json_text *text)
{
    struct byte_cursor *cursor = &reader->cursor;
    unsigned char bytes[4] = {*cursor->at++};
    size_t n = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
    int least = 0x80, most = 0xbf; /* of the second byte */

    switch (bytes[0]) {
    case 0xe0: /* no longer than needed */
        least = 0xa0;
        break;
    case 0xed: /* no surrogates */
        most = 0x9f;
        break;
    case 0xf0:
        least = 0x90;
        break;
    case 0xf4: /* up to U+10FFFF */
        most = 0x8f;
        break;
    default:
        break;
    }
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4) {
        return json_refuse(reader, "a string that is no UTF-8 (byte 0x%02x)", bytes[0]);
    }
    for (size_t i = 1; i < n; i++) {
        int byte = cursor_peek(cursor);

        if (byte == CURSOR_END) {
            return refuse_end(reader);
        }
        if (byte < least || byte > most) {
            return json_refuse(reader, "a string that is no UTF-8 (byte 0x%02x)", (unsigned)byte);
        }
        bytes[i] = *cursor->at++;
        least = 0x80;
        most = 0xbf;
    }
    keep(text, bytes, n);
    return 0;
}

int json_take_string(struct json_reader *reader, struct json_text *ret_text)
{
    struct byte_cursor *cursor = &reader->cursor;
    int status = 0;

    if (ret_text) {
        ret_text->len = 0;
    }
    cursor->at++; /* the quote */
    while (status == 0 && cursor_has(cursor)) {
        const unsigned char *special = find_special(cursor->at, cursor->end);

        keep(ret_text, cursor->at, (size_t)(special - cursor->at));
        cursor->at = special;
        if (special == cursor->end) {
            continue;
        }
        if (*special == '"') {
            cursor->at++;
            return 0;
        }
        if (*special == '\\') {
            cursor->at++;
            status = take_escape(reader, ret_text);
        } else if (*special >= 0x80) {
            status = take_multibyte(reader, ret_text);
        } else if (*special == '\n') {
            status = json_refuse(reader, "the line ends within a string; in strings it is \\n");
        } else {
            status = json_refuse(reader, "a control byte (0x%02x) in a string", *special);
        }
    }
    return status < 0 ? status : refuse_end(reader);
}

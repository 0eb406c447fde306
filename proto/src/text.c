/*
 * UTF-8 as table 3-7 of the Unicode standard has it: no overlong forms, no surrogates, nothing
 * above U+10FFFF. Pure functions.
 */
#include "text.h"

#include <string.h>

size_t text_character_len(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned char low = 0x80, high = 0xBF; /* of the second byte */
    size_t len, i;

    if (p[0] < 0x80) {
        return p[0] != 0;
    }
    if (p[0] < 0xC2 || p[0] > 0xF4) {
        return 0;
    }
    len = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (p[0] == 0xE0) {
        low = 0xA0;
    } else if (p[0] == 0xED) {
        high = 0x9F;
    } else if (p[0] == 0xF0) {
        low = 0x90;
    } else if (p[0] == 0xF4) {
        high = 0x8F;
    }
    if (p[1] < low || p[1] > high) {
        return 0;
    }
    for (i = 2; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return len;
}

/* Of a character that is well-formed. */
static bool is_control(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    return p[0] < 0x20 || p[0] == 0x7F || (p[0] == 0xC2 && p[1] < 0xA0);
}

bool text_is_plain(const char *text)
{
    size_t len;

    for (; *text; text += len) {
        len = text_character_len(text);
        if (len == 0 || is_control(text)) {
            return false;
        }
    }
    return true;
}

const char *text_clip(const char *text, char ret[TEXT_CLIP_SIZE])
{
    static const char more[] = "...";
    size_t used = 0, len;

    while (*text) {
        len = text_character_len(text);
        if (used + (len > 0 ? len : 1) > TEXT_CLIP_SIZE - sizeof(more)) {
            memcpy(ret + used, more, sizeof(more));
            return ret;
        }
        if (len == 0 || is_control(text)) {
            ret[used++] = '?';
            text += len > 0 ? len : 1;
        } else {
            memcpy(ret + used, text, len);
            used += len;
            text += len;
        }
    }
    ret[used] = '\0';
    return ret;
}

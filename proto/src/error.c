/* Errors in words. */
#include <skrull/error.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int skrull_error_set(struct skrull_error *err, int code, const char *format, ...)
{
    va_list args;

    if (err) {
        err->code = code;
        va_start(args, format);
        (void)vsnprintf(err->message, sizeof(err->message), format, args);
        va_end(args);
    }
    return code;
}

int skrull_error_prefix(struct skrull_error *err, int code, const char *format, ...)
{
    char message[SKRULL_ERROR_MESSAGE_SIZE];
    va_list args;
    size_t len;

    if (err) {
        va_start(args, format);
        (void)vsnprintf(message, sizeof(message), format, args);
        va_end(args);
        len = strlen(message);
        (void)snprintf(message + len, sizeof(message) - len, ": %.*s", (int)sizeof(message) - 1,
                       err->message);
        err->code = code;
        memcpy(err->message, message, sizeof(message));
    }
    return code;
}

const char *skrull_error_text(int code)
{
    switch (code) {
    case 0:
        return "ok";
#define X(name, status, text)                                                                      \
    case -(status):                                                                                \
        return text;
#include "error.def"
#undef X
    default:
        return "unknown";
    }
}

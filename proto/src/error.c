/* Errors in words. */
#include <skrull/error.h>

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int skrull_error_set(struct skrull_error *err, int code, const char *format, ...)
{
    va_list args;

    if (err) {
        err->code = code;
        err->reason = SKRULL_REASON_NONE;
        err->limit = 0;
        va_start(args, format);
        (void)vsnprintf(err->message, sizeof(err->message), format, args);
        va_end(args);
    }
    return code;
}

int skrull_error_because(struct skrull_error *err, int code, enum skrull_reason reason,
                         uint64_t limit, const char *format, ...)
{
    va_list args;

    if (err) {
        err->code = code;
        err->reason = reason;
        err->limit = limit;
        va_start(args, format);
        (void)vsnprintf(err->message, sizeof(err->message), format, args);
        va_end(args);
    }
    return code;
}

/* Appends to a message, cutting what does not fit. */
static void append(char message[SKRULL_ERROR_MESSAGE_SIZE], const char *text)
{
    size_t len = strlen(message), room = SKRULL_ERROR_MESSAGE_SIZE - 1 - len, more = strlen(text);

    more = more < room ? more : room;
    memcpy(message + len, text, more);
    message[len + more] = '\0';
}

int skrull_error_prefix(struct skrull_error *err, int code, const char *format, ...)
{
    char message[SKRULL_ERROR_MESSAGE_SIZE];
    va_list args;

    if (err) {
        memcpy(message, err->message, sizeof(message));
        va_start(args, format);
        (void)vsnprintf(err->message, sizeof(err->message), format, args);
        va_end(args);
        append(err->message, ": ");
        append(err->message, message);
        err->code = code;
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

const char *skrull_reason_text(enum skrull_reason reason)
{
    static const char *const texts[] = {
        [SKRULL_REASON_NONE] = "",
#define X(name, meaning) [SKRULL_REASON_##name] = #name,
#include "reason.def"
#undef X
    };

    static_assert(sizeof(texts) / sizeof(texts[0]) == SKRULL_N_REASONS, "a row for each reason");
    return (unsigned)reason < SKRULL_N_REASONS ? texts[reason] : "";
}

/* Options, errors and exit statuses of one invocation. */
#include "ctl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const ctl_format_names[] = {"table", "wide", "json", "csv", NULL};

const char *ctl_text(const struct ctl *ctl, const char *option)
{
    for (size_t i = ctl->n_values; i-- > 0;) {
        if (strcmp(ctl->values[i].option->name, option) == 0) {
            return ctl->values[i].text;
        }
    }
    return NULL;
}

bool ctl_has(const struct ctl *ctl, const char *option)
{
    for (size_t i = 0; i < ctl->n_values; i++) {
        if (strcmp(ctl->values[i].option->name, option) == 0) {
            return true;
        }
    }
    return false;
}

bool ctl_parse_number(const char *text, uint64_t max, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (!text[0]) {
        return false;
    }
    for (const char *c = text; *c; c++) {
        uint64_t digit = (uint64_t)(*c - '0');

        if (*c < '0' || *c > '9' || number > (UINT64_MAX - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    if (number > max) {
        return false;
    }
    *ret_number = number;
    return true;
}

int ctl_number(const struct ctl *ctl, const char *option, uint64_t max, uint64_t fallback,
               uint64_t *ret_number)
{
    const char *text = ctl_text(ctl, option);

    if (!text) {
        *ret_number = fallback;
        return CTL_DONE;
    }
    if (!ctl_parse_number(text, max, ret_number)) {
        return ctl_misuse(ctl, "%s: %.40s is not a number from 0 to %llu", option, text,
                          (unsigned long long)max);
    }
    return CTL_DONE;
}

int ctl_connect(struct ctl *ctl, struct skrull_client **ret_client)
{
    const struct skrull_client_options options = {.server = ctl->server};
    struct skrull_error err;

    if (!ctl->client) {
        int r = skrull_client_new(&options, &ctl->client, &err);

        if (r == SKRULL_ERR_INVALID_ARGUMENT) {
            return ctl_misuse(ctl, "%s", err.message);
        }
        if (r < 0) {
            return ctl_fail(ctl, &err);
        }
    }
    *ret_client = ctl->client;
    return CTL_DONE;
}

int ctl_exit_of(int code)
{
    switch (code) {
    case 0:
        return CTL_DONE;
    case SKRULL_ERR_UNAVAILABLE:
        return CTL_UNREACHABLE;
    case SKRULL_ERR_NOT_FOUND:
    case SKRULL_ERR_OUT_OF_RANGE:
        return CTL_MISSING;
    default:
        return CTL_FAILED;
    }
}

int ctl_fail(const struct ctl *ctl, const struct skrull_error *err)
{
    (void)fprintf(stderr, "skrullctl: %s: %s\n", ctl->command->verb, err->message);
    if (ctl->is_checking && err->code == SKRULL_ERR_DATA_LOSS) {
        return CTL_FAULT;
    }
    /* Files can be unavailable too: only a verb that has a client may blame the daemon. */
    if (err->code == SKRULL_ERR_UNAVAILABLE && !ctl->client) {
        return CTL_FAILED;
    }
    return ctl_exit_of(err->code);
}

int ctl_misuse(const struct ctl *ctl, const char *format, ...)
{
    va_list args;

    (void)fprintf(stderr, "skrullctl: %s: ", ctl->command->verb);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fprintf(stderr, "; see skrullctl %s --help\n", ctl->command->verb);
    return CTL_USAGE;
}

int ctl_print_json(const struct ctl *ctl, int r, char *text, const struct skrull_error *err)
{
    if (r < 0) {
        return ctl_fail(ctl, err);
    }
    (void)puts(text);
    free(text);
    return CTL_DONE;
}

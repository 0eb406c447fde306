/*
 * What one invocation of skrullctl is: its verb, operands and options, where the daemon is, how to
 * print. A verb is a function int (struct ctl *) that returns the exit status; cmd_*.c hold them,
 * commands.def lists them. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/client.h>

#include "command.h"

enum ctl_exit {
    CTL_DONE = 0,
    CTL_FAILED = 1,
    CTL_USAGE = 2,
    CTL_MISSING = 3,     /* no such job, step or file */
    CTL_UNREACHABLE = 4, /* the daemon */
    CTL_FAULT = 5,       /* a check found one */
};

enum ctl_format { CTL_TABLE, CTL_WIDE, CTL_JSON, CTL_CSV };

extern const char *const ctl_format_names[]; /* "table", ...; ends with NULL */

#define CTL_MAX_OPERANDS 4
#define CTL_MAX_VALUES 64 /* options that were given */

struct ctl_value {
    const struct command_option *option;
    const char *text; /* NULL: a flag */
};

struct ctl {
    const struct command *command;
    const char *server; /* NULL: the default */
    enum ctl_format format;
    const char *operands[CTL_MAX_OPERANDS];
    size_t n_operands;
    struct ctl_value values[CTL_MAX_VALUES];
    size_t n_values;
    struct skrull_client *client; /* once it was needed */
    bool is_checking; /* a plan that contradicts itself (DATA_LOSS) is a fault found, no failure */
};

/* Whether the option was given; its last text, or NULL. */
bool ctl_has(const struct ctl *ctl, const char *option);
const char *ctl_text(const struct ctl *ctl, const char *option);

/* The number that the option gives, or `fallback` where it is absent. CTL_USAGE, said, where it is
 * not a number up to `max`. */
int ctl_number(const struct ctl *ctl, const char *option, uint64_t max, uint64_t fallback,
               uint64_t *ret_number);

/* A number in digits, all of `text`, at most `max`. */
bool ctl_parse_number(const char *text, uint64_t max, uint64_t *ret_number);

/* The client of the daemon, connected lazily; CTL_USAGE, said, where the address is none. */
int ctl_connect(struct ctl *ctl, struct skrull_client **ret_client);

/* Says "skrullctl: VERB: MESSAGE" on standard error; returns the exit status of the error's code.
 */
int ctl_fail(const struct ctl *ctl, const struct skrull_error *err);

/* Says "skrullctl: VERB: MESSAGE; see skrullctl VERB --help"; returns CTL_USAGE. */
int ctl_misuse(const struct ctl *ctl, const char *format, ...) SKRULL_PRINTF(2, 3);

/* Prints a JSON document of ctl's format and frees it; `r` is what making it returned. */
int ctl_print_json(const struct ctl *ctl, int r, char *text, const struct skrull_error *err);

/* What an error's code is as an exit status. */
int ctl_exit_of(int code);

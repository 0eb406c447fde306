/* The table of verbs, from commands.def. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ctl;

struct command_option {
    const char *name;    /* "--step", "-f" */
    const char *metavar; /* "N"; NULL: a flag */
    const char *help;
    enum { OPTION_OPTIONAL, OPTION_REQUIRED, OPTION_NOT_BUILT } kind;
};

struct command {
    const char *verb;     /* "plan make" */
    const char *synopsis; /* what follows the verb */
    const char *summary;
    size_t min_operands, max_operands;
    int (*run)(struct ctl *ctl);          /* NULL: not built yet */
    const struct command_option *options; /* ends with name NULL */
};

extern const struct command commands[]; /* ends with verb NULL */
extern const struct command_option
    command_globals[]; /* options of every verb; ends with name NULL */

/* The verb that begins at words[0] ([n_words]); NULL: none. *ret_n_words: how many words it has. */
const struct command *command_find(const char *const *words, size_t n_words, size_t *ret_n_words);

/* Whether some verb begins with `word` ("plan"). */
bool command_is_noun(const char *word);

/* The option of that name, of the verb (nullable) or of every verb; NULL: none. */
const struct command_option *command_option_find(const struct command *command, const char *name);

/* Help on standard output: of one verb, or of the program where `command` is NULL. */
void command_help(const struct command *command);

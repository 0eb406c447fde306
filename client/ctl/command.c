/* Verbs and options by name, and help: all from one table, so that help and parser cannot disagree.
 */
#include "command.h"

#include <stdio.h>
#include <string.h>

#include "cmd.h"

/* clang-format off */
#define OPTION(name, metavar, help) { (name), (metavar), (help), OPTION_OPTIONAL }
#define NEED(name, metavar, help) { (name), (metavar), (help), OPTION_REQUIRED }
#define FLAG(name, help) { (name), NULL, (help), OPTION_OPTIONAL }
#define UNBUILT(name, metavar, help) { (name), (metavar), (help), OPTION_NOT_BUILT }
#define NO_OPTION { NULL, NULL, NULL, OPTION_OPTIONAL }

const struct command commands[] = {
#define COMMAND(function, verb, synopsis, min, max, summary, ...)                                  \
    { (verb), (synopsis), (summary), (min), (max), (function),                                     \
      (const struct command_option[]){ __VA_ARGS__, NO_OPTION } },
#define LATER(verb, synopsis, summary)                                                             \
    { (verb), (synopsis), (summary), 0, 0, NULL, (const struct command_option[]){ NO_OPTION } },
#include "commands.def"
#undef COMMAND
#undef LATER
    { 0 },
};

const struct command_option command_globals[] = {
    OPTION("--server", "ADDR", "the daemon: HOST:PORT, [V6]:PORT or unix:PATH (default: $SKRULL_SERVER, "
                               "else the default socket)"),
    OPTION("-o", "FORMAT", "table (default), wide, json or csv"),
    UNBUILT("--tls-ca", "F", "certificates to trust"),
    UNBUILT("--token-file", "F", "a file with a token"),
    FLAG("--help", "print help, of the program or of a command"),
    FLAG("--version", "print the version"),
    NO_OPTION,
};
/* clang-format on */

const struct command *command_find(const char *const *words, size_t n_words, size_t *ret_n_words)
{
    for (const struct command *command = commands; command->verb; command++) {
        const char *space = strchr(command->verb, ' ');
        size_t first = space ? (size_t)(space - command->verb) : strlen(command->verb);

        if (n_words < 1 || strlen(words[0]) != first ||
            memcmp(words[0], command->verb, first) != 0) {
            continue;
        }
        if (!space || (n_words > 1 && strcmp(space + 1, words[1]) == 0)) {
            *ret_n_words = space ? 2 : 1;
            return command;
        }
    }
    return NULL;
}

bool command_is_noun(const char *word)
{
    size_t len = strlen(word);

    for (const struct command *command = commands; command->verb; command++) {
        if (strncmp(command->verb, word, len) == 0 && command->verb[len] == ' ') {
            return true;
        }
    }
    return false;
}

static const struct command_option *find_in(const struct command_option *options, const char *name)
{
    for (; options->name; options++) {
        if (strcmp(options->name, name) == 0) {
            return options;
        }
    }
    return NULL;
}

const struct command_option *command_option_find(const struct command *command, const char *name)
{
    const struct command_option *option = find_in(command_globals, name);

    return option || !command ? option : find_in(command->options, name);
}

static void print_options(const struct command_option *options)
{
    for (; options->name; options++) {
        char left[40];

        if (options->kind == OPTION_NOT_BUILT) {
            continue;
        }
        (void)snprintf(left, sizeof(left), "%s %s", options->name,
                       options->metavar ? options->metavar : "");
        (void)printf("  %-21s %s%s\n", left, options->help,
                     options->kind == OPTION_REQUIRED ? " (required)" : "");
    }
}

static void print_program_help(void)
{
    (void)printf(
        "usage: skrullctl [--server ADDR] [-o table|wide|json|csv] COMMAND\n\nCommands:\n");
    for (const struct command *command = commands; command->verb; command++) {
        if (command->run) {
            (void)printf("  %-16s %s\n", command->verb, command->summary);
        }
    }
    (void)printf("\nOptions of every command:\n");
    print_options(command_globals);
    (void)printf("\nNot built yet:");
    for (const struct command *command = commands; command->verb; command++) {
        if (!command->run) {
            (void)printf("%s %s", command[-1].run ? "" : ",", command->verb);
        }
    }
    (void)printf(
        "\n\nExit status: 0 done; 1 it failed; 2 wrong usage; 3 no such job, step or file;\n"
        "4 the daemon could not be reached; 5 a check found a fault.\n");
}

void command_help(const struct command *command)
{
    if (!command) {
        print_program_help();
        return;
    }
    (void)printf("usage: skrullctl %s%s%s\n\n%s%s\n", command->verb,
                 command->synopsis[0] ? " " : "", command->synopsis, command->summary,
                 command->run ? "" : " (not built yet)");
    if (command->options->name) {
        (void)printf("\nOptions:\n");
        print_options(command->options);
    }
    (void)printf("\nOptions of every command:\n");
    print_options(command_globals);
}

/* The script for fish: a line an option and verb, shown where the words so far are that verb. */
#include "completion.h"

#include <string.h>

#include "command.h"

static const char head[] =
    "# Completion of skrullctl for fish, as \"skrullctl completion fish\" prints it.\n"
    "\n"
    "function __skrullctl_jobs\n"
    "    set -l server (commandline -pc | string match -r -- '--server[= ]\\S+' | string split ' "
    "')\n"
    "    timeout 2 skrullctl $server job list -o csv 2>/dev/null | tail -n +2 | cut -d, -f1\n"
    "end\n"
    "\n";

static const char body[] =
    "function __skrullctl_at # VERB: whether the line so far is that, or half of one, or '' for "
    "none\n"
    "    set -l verb\n"
    "    set -l is_value 0\n"
    "    set -l words (commandline -opc)\n"
    "    for word in $words[2..-1]\n"
    "        if test $is_value = 1\n"
    "            set is_value 0\n"
    "        else if contains -- $word $__skrullctl_valued\n"
    "            set is_value 1\n"
    "        else if string match -q -- '-*' $word\n"
    "            continue\n"
    "        else if test (count $verb) = 0\n"
    "            set verb $word\n"
    "        else if test (count $verb) = 1; and contains -- $verb[1] $__skrullctl_nouns\n"
    "            set -a verb $word\n"
    "        end\n"
    "    end\n"
    "    test \"$verb\" = \"$argv[1]\"\n"
    "end\n"
    "\n"
    "complete -c skrullctl -f\n";

/* Within single quotes. */
static void write_quoted(FILE *out, const char *text)
{
    (void)fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') {
            (void)fputc('\\', out);
        }
        (void)fputc(*text, out);
    }
    (void)fputc('\'', out);
}

static void write_name(FILE *out, const char *name)
{
    (void)fprintf(out, " %s", name);
}

static bool is_first_of_noun(const struct command *command, size_t len)
{
    return command == commands || strncmp(command[-1].verb, command->verb, len + 1) != 0;
}

static void write_lists(FILE *out)
{
    (void)fputs("set -g __skrullctl_valued", out);
    completion_each_valued(write_name, out);
    (void)fputs("\nset -g __skrullctl_nouns", out);
    for (const struct command *command = commands; command->verb; command++) {
        size_t len = strcspn(command->verb, " ");

        if (command->run && command->verb[len] && is_first_of_noun(command, len)) {
            (void)fprintf(out, " %.*s", (int)len, command->verb);
        }
    }
    (void)fputs("\n\n", out);
}

/* A first word stands alone; the second word of a verb after its noun. */
static void write_verb(FILE *out, const struct command *command)
{
    size_t len = strcspn(command->verb, " ");

    if (command->verb[len]) {
        if (is_first_of_noun(command, len)) {
            (void)fprintf(out, "complete -c skrullctl -n \"__skrullctl_at ''\" -a %.*s\n", (int)len,
                          command->verb);
        }
        (void)fprintf(out, "complete -c skrullctl -n '__skrullctl_at %.*s' -a %s -d ", (int)len,
                      command->verb, command->verb + len + 1);
    } else {
        (void)fprintf(out, "complete -c skrullctl -n \"__skrullctl_at ''\" -a %s -d ",
                      command->verb);
    }
    write_quoted(out, command->summary);
    (void)fputc('\n', out);
}

/* "-r -F" lets files follow, "-x -a" the words. */
static void write_value(FILE *out, const char *name)
{
    switch (completion_of_option(name)) {
    case COMPLETION_FILES:
        (void)fputs(" -r -F", out);
        break;
    case COMPLETION_FOLDERS:
        (void)fputs(" -x -a '(__fish_complete_directories)'", out);
        break;
    case COMPLETION_WORDS:
    case COMPLETION_LIST:
        (void)fputs(" -x -a '", out);
        completion_write_option_words(out, name);
        (void)fputc('\'', out);
        break;
    case COMPLETION_ANY:
    case COMPLETION_JOBS:
        (void)fputs(" -x", out);
        break;
    }
}

static void write_options(FILE *out, const char *condition, const struct command_option *options)
{
    for (; options->name; options++) {
        bool is_long = options->name[1] == '-';

        if (options->kind == OPTION_NOT_BUILT) {
            continue;
        }
        (void)fprintf(out, "complete -c skrullctl%s -%c %s", condition, is_long ? 'l' : 's',
                      options->name + (is_long ? 2 : 1));
        if (options->metavar) {
            write_value(out, options->name);
        }
        (void)fputs(" -d ", out);
        write_quoted(out, options->help);
        (void)fputc('\n', out);
    }
}

static void write_operands(FILE *out, const struct command *command, const char *condition)
{
    switch (completion_of_operands(command)) {
    case COMPLETION_FILES:
        (void)fprintf(out, "complete -c skrullctl%s -F\n", condition);
        break;
    case COMPLETION_JOBS:
        (void)fprintf(out, "complete -c skrullctl%s -a '(__skrullctl_jobs)'\n", condition);
        break;
    case COMPLETION_WORDS:
        (void)fprintf(out, "complete -c skrullctl%s -a '", condition);
        completion_write_operand_words(out, command);
        (void)fputs("'\n", out);
        break;
    case COMPLETION_ANY:
    case COMPLETION_LIST:
    case COMPLETION_FOLDERS:
        break;
    }
}

void completion_write_fish(FILE *out)
{
    (void)fputs(head, out);
    write_lists(out);
    (void)fputs(body, out);
    write_options(out, "", command_globals);
    for (const struct command *command = commands; command->verb; command++) {
        char condition[96];

        if (!command->run) {
            continue;
        }
        (void)snprintf(condition, sizeof(condition), " -n \"__skrullctl_at '%s'\"", command->verb);
        write_verb(out, command);
        write_options(out, condition, command->options);
        write_operands(out, command, condition);
    }
}

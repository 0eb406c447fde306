/* What may stand where, and the tables that bash and zsh share. Pure but for what it writes. */
#include "completion.h"

#include <string.h>

#include <skrull/planner.h>

#include "command.h"
#include "ctl.h"
#include "job_fields.h"

/* What an option takes whose value is not any text; every other one is ANY. */
static const struct {
    const char *name;
    enum completion_kind kind;
} kinds[] = {
    {"-o", COMPLETION_WORDS},           {"--format", COMPLETION_WORDS},
    {"--unit", COMPLETION_WORDS},       {"--policies", COMPLETION_LIST},
    {"--mask", COMPLETION_LIST},        {"-f", COMPLETION_FILES},
    {"--job", COMPLETION_FILES},        {"--tls-ca", COMPLETION_FILES},
    {"--token-file", COMPLETION_FILES}, {"--svg", COMPLETION_FILES},
    {"--trace", COMPLETION_FILES},      {"--data-root", COMPLETION_FOLDERS},
};

static const char *const index_formats[] = {
    "auto",
#define X(name) #name,
#include "index/formats.def"
#undef X
    NULL,
};

enum completion_kind completion_of_option(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return kinds[i].kind;
        }
    }
    return COMPLETION_ANY;
}

enum completion_kind completion_of_operands(const struct command *command)
{
    const char *synopsis = command->synopsis;

    if (command->max_operands == 0) {
        return COMPLETION_ANY;
    }
    if (synopsis[0] >= 'a' && synopsis[0] <= 'z') {
        return COMPLETION_WORDS; /* "bash|zsh|fish" */
    }
    if (strncmp(synopsis, "PATH", 4) == 0 || strncmp(synopsis, "SRC", 3) == 0 ||
        strncmp(synopsis, "A B", 3) == 0) {
        return COMPLETION_FILES;
    }
    return COMPLETION_JOBS;
}

static void write_words(FILE *out, const char *const *words)
{
    for (; *words; words++) {
        (void)fprintf(out, " %s", *words);
    }
}

static void write_units(FILE *out)
{
    for (const struct job_word *word = job_field_find(job_data_fields, "unit")->words; word->word;
         word++) {
        (void)fprintf(out, " %s", word->word);
    }
}

/* The keys that a mask may name, "batch.align"; data sets go as one. */
static void write_keys(FILE *out)
{
    for (const struct job_field *field = job_fields; field->path; field++) {
        (void)fprintf(out, " %s", field->path);
    }
    (void)fputs(" data", out);
}

void completion_write_option_words(FILE *out, const char *name)
{
    if (strcmp(name, "-o") == 0) {
        write_words(out, ctl_format_names);
    } else if (strcmp(name, "--format") == 0) {
        write_words(out, index_formats);
    } else if (strcmp(name, "--policies") == 0) {
        write_words(out, skrull_planner_policies());
    } else if (strcmp(name, "--unit") == 0) {
        write_units(out);
    } else if (strcmp(name, "--mask") == 0) {
        write_keys(out);
    }
}

void completion_write_operand_words(FILE *out, const struct command *command)
{
    if (completion_of_operands(command) == COMPLETION_WORDS) {
        (void)fputc(' ', out);
        for (const char *c = command->synopsis; *c && *c != ' '; c++) {
            (void)fputc(*c == '|' ? ' ' : *c, out);
        }
    }
}

/* Whether an option of that name stands before `end` in the table already. */
static bool is_seen(const struct command *end, const struct command_option *option)
{
    for (const struct command *command = commands; command != end; command++) {
        for (const struct command_option *other = command->options; other->name; other++) {
            if (strcmp(other->name, option->name) == 0) {
                return true;
            }
        }
    }
    return false;
}

void completion_each_valued(void (*fn)(FILE *out, const char *name), FILE *out)
{
    for (const struct command_option *option = command_globals; option->name; option++) {
        if (option->metavar && option->kind != OPTION_NOT_BUILT) {
            fn(out, option->name);
        }
    }
    for (const struct command *command = commands; command->verb; command++) {
        for (const struct command_option *option = command->options; option->name; option++) {
            if (option->metavar && option->kind != OPTION_NOT_BUILT && !is_seen(command, option)) {
                fn(out, option->name);
            }
        }
    }
}

static const char *kind_name(enum completion_kind kind)
{
    static const char *const names[] = {"any", "words", "list", "files", "folders", "jobs"};

    return names[kind];
}

/* Second words of a noun's verbs, or the first words of all. */
static void write_verbs(FILE *out, const char *noun, size_t len)
{
    for (const struct command *command = commands; command->verb; command++) {
        if (command->run && strncmp(command->verb, noun, len) == 0 && command->verb[len] == ' ') {
            (void)fprintf(out, " %s", command->verb + len + 1);
        }
    }
}

/* Whether the verb is the table's first, of those that are built, with its first word. */
static bool is_first_of_noun(const struct command *command, size_t len)
{
    for (const struct command *other = commands; other != command; other++) {
        if (other->run && strncmp(other->verb, command->verb, len) == 0 &&
            (other->verb[len] == ' ' || !other->verb[len])) {
            return false;
        }
    }
    return command->run != NULL;
}

static void write_verb_table(FILE *out)
{
    (void)fputs(
        "_skrullctl_verbs() { # what follows a noun, or stands first\n    case $1 in\n    '') echo",
        out);
    for (const struct command *command = commands; command->verb; command++) {
        size_t len = strcspn(command->verb, " ");

        if (is_first_of_noun(command, len)) {
            (void)fprintf(out, " %.*s", (int)len, command->verb);
        }
    }
    (void)fputs(" ;;\n", out);
    for (const struct command *command = commands; command->verb; command++) {
        size_t len = strcspn(command->verb, " ");

        if (command->verb[len] && is_first_of_noun(command, len)) {
            (void)fprintf(out, "    %.*s) echo", (int)len, command->verb);
            write_verbs(out, command->verb, len);
            (void)fputs(" ;;\n", out);
        }
    }
    (void)fputs("    esac\n}\n\n", out);
}

static void write_options(FILE *out, const struct command_option *options)
{
    for (; options->name; options++) {
        if (options->kind != OPTION_NOT_BUILT) {
            (void)fprintf(out, " %s", options->name);
        }
    }
}

static void write_option_table(FILE *out)
{
    (void)fputs("_skrullctl_options() { # of a verb\n    echo", out);
    write_options(out, command_globals);
    (void)fputs("\n    case $1 in\n", out);
    for (const struct command *command = commands; command->verb; command++) {
        if (command->run && command->options->name) {
            (void)fprintf(out, "    '%s') echo", command->verb);
            write_options(out, command->options);
            (void)fputs(" ;;\n", out);
        }
    }
    (void)fputs("    esac\n}\n\n", out);
}

static void write_operand_table(FILE *out)
{
    (void)fputs("_skrullctl_operands() { # of a verb: their kind, and words\n    case $1 in\n",
                out);
    for (const struct command *command = commands; command->verb; command++) {
        if (command->run && command->max_operands > 0) {
            (void)fprintf(out, "    '%s') echo %s", command->verb,
                          kind_name(completion_of_operands(command)));
            completion_write_operand_words(out, command);
            (void)fputs(" ;;\n", out);
        }
    }
    (void)fputs("    esac\n}\n\n", out);
}

static void write_value(FILE *out, const char *name)
{
    (void)fprintf(out, "    %s) echo %s", name, kind_name(completion_of_option(name)));
    completion_write_option_words(out, name);
    (void)fputs(" ;;\n", out);
}

void completion_write_tables(FILE *out)
{
    write_verb_table(out);
    write_option_table(out);
    write_operand_table(out);
    (void)fputs(
        "_skrullctl_values() { # of an option: their kind, and words; fails where it takes none\n"
        "    case $1 in\n",
        out);
    completion_each_valued(write_value, out);
    (void)fputs("    *) return 1 ;;\n    esac\n}\n\n", out);
}

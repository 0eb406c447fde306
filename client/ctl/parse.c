/*
 * The command line: options of every verb may stand anywhere, the verb's own after it; "--" ends
 * the options.
 * "--name value" and "--name=value" are the same. Everything known is known from commands.def.
 */
#include "parse.h"

#include <stdio.h>
#include <string.h>

#define MAX_NAME 64

struct parser {
    struct ctl *ctl;
    const char *const *words;
    size_t n_words, at;
    bool is_help, is_version, is_over; /* is_over: "--" was seen */
    int status;
};

static int wrong(struct parser *parser, int status, const char *what, const char *why)
{
    (void)fprintf(stderr, "skrullctl: %s: %s\n", what, why);
    parser->status = status;
    return -1;
}

static int set_format(struct parser *parser, const char *text)
{
    for (size_t i = 0; ctl_format_names[i]; i++) {
        if (strcmp(text, ctl_format_names[i]) == 0) {
            parser->ctl->format = (enum ctl_format)i;
            return 0;
        }
    }
    return wrong(parser, CTL_USAGE, "-o", "table, wide, json and csv are allowed");
}

/* Keeps an option with its value. */
static int keep(struct parser *parser, const struct command_option *option, const char *text)
{
    struct ctl *ctl = parser->ctl;

    if (option->kind == OPTION_NOT_BUILT) {
        return wrong(parser, CTL_FAILED, option->name, "not built yet");
    }
    if (strcmp(option->name, "--help") == 0) {
        parser->is_help = true;
        return 0;
    }
    if (strcmp(option->name, "--version") == 0) {
        parser->is_version = true;
        return 0;
    }
    if (strcmp(option->name, "--server") == 0) {
        ctl->server = text;
        return 0;
    }
    if (strcmp(option->name, "-o") == 0) {
        return set_format(parser, text);
    }
    if (ctl->n_values == CTL_MAX_VALUES) {
        return wrong(parser, CTL_USAGE, option->name, "too many options");
    }
    ctl->values[ctl->n_values++] = (struct ctl_value){.option = option, .text = text};
    return 0;
}

static int parse_option(struct parser *parser)
{
    const char *word = parser->words[parser->at++];
    const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    size_t len = equals ? (size_t)(equals - word) : strlen(word);
    const struct command_option *option;
    char name[MAX_NAME];

    if (len >= sizeof(name)) {
        return wrong(parser, CTL_USAGE, "options", "one is too long; see skrullctl --help");
    }
    memcpy(name, word, len);
    name[len] = '\0';
    option = command_option_find(parser->ctl->command, name);
    if (!option) {
        return wrong(parser, CTL_USAGE, name, "no such option; see --help");
    }
    if (!option->metavar) {
        return equals ? wrong(parser, CTL_USAGE, name, "takes no value")
                      : keep(parser, option, NULL);
    }
    if (equals) {
        return keep(parser, option, equals + 1);
    }
    if (parser->at == parser->n_words) {
        return wrong(parser, CTL_USAGE, name, "a value is missing; see --help");
    }
    return keep(parser, option, parser->words[parser->at++]);
}

static bool is_option(const struct parser *parser)
{
    const char *word = parser->words[parser->at];

    return !parser->is_over && word[0] == '-' && word[1];
}

static int parse_verb(struct parser *parser)
{
    const char *const *words = parser->words + parser->at;
    size_t n_verb = 0;

    parser->ctl->command = command_find(words, parser->n_words - parser->at, &n_verb);
    if (!parser->ctl->command) {
        return wrong(parser, CTL_USAGE, words[0],
                     command_is_noun(words[0]) ? "which of its commands? see skrullctl --help"
                                               : "no such command; see skrullctl --help");
    }
    parser->at += n_verb;
    if (!parser->ctl->command->run) {
        for (; parser->at < parser->n_words; parser->at++) {
            parser->is_help |= strcmp(parser->words[parser->at], "--help") == 0;
        }
    }
    return 0;
}

static int parse_operand(struct parser *parser)
{
    struct ctl *ctl = parser->ctl;

    if (ctl->n_operands == ctl->command->max_operands) {
        (void)ctl_misuse(ctl, "%.60s: one operand too many", parser->words[parser->at]);
        parser->status = CTL_USAGE;
        return -1;
    }
    ctl->operands[ctl->n_operands++] = parser->words[parser->at++];
    return 0;
}

static int parse_words(struct parser *parser)
{
    while (parser->at < parser->n_words) {
        int r;

        if (!parser->is_over && strcmp(parser->words[parser->at], "--") == 0) {
            parser->is_over = true;
            parser->at++;
            continue;
        }
        if (is_option(parser)) {
            r = parse_option(parser);
        } else if (!parser->ctl->command) {
            r = parse_verb(parser);
        } else {
            r = parse_operand(parser);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* Everything that must be there is. */
static int check_complete(struct parser *parser)
{
    const struct ctl *ctl = parser->ctl;

    parser->status = CTL_USAGE;
    if (!ctl->command) {
        return wrong(parser, CTL_USAGE, "no command", "see skrullctl --help");
    }
    if (!ctl->command->run) {
        return wrong(parser, CTL_FAILED, ctl->command->verb, "not built yet");
    }
    if (ctl->n_operands < ctl->command->min_operands) {
        (void)ctl_misuse(ctl, "an operand is missing: %s", ctl->command->synopsis);
        return -1;
    }
    for (const struct command_option *option = ctl->command->options; option->name; option++) {
        if (option->kind == OPTION_REQUIRED && !ctl_has(ctl, option->name)) {
            (void)ctl_misuse(ctl, "%s %s is required", option->name, option->metavar);
            return -1;
        }
    }
    parser->status = CTL_DONE;
    return 0;
}

enum parse_outcome parse_arguments(struct ctl *ctl, size_t n_words, const char *const *words,
                                   int *ret_status)
{
    struct parser parser = {.ctl = ctl, .words = words, .n_words = n_words};
    int r = parse_words(&parser);

    if (r == 0 && parser.is_help) {
        return PARSE_HELP;
    }
    if (r == 0 && parser.is_version) {
        return PARSE_VERSION;
    }
    if (r == 0) {
        r = check_complete(&parser);
    }
    *ret_status = parser.status;
    return r < 0 ? PARSE_WRONG : PARSE_RUN;
}

/*
 * Completions for shells, made from the table of verbs (command.h): verbs, options, the words that
 * an option takes, and the daemon's jobs, which the shell asks skrullctl for. One file a shell.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

struct command;

enum completion_kind {
    COMPLETION_ANY,     /* nothing is known: a number, a name */
    COMPLETION_WORDS,   /* one of some words */
    COMPLETION_LIST,    /* several of them, by commas */
    COMPLETION_FILES,   /* a file */
    COMPLETION_FOLDERS, /* a folder */
    COMPLETION_JOBS,    /* a job of the daemon */
};

/* What the option takes as its value. */
enum completion_kind completion_of_option(const char *name);

/* What the verb takes as operands; ANY also where there are none. */
enum completion_kind completion_of_operands(const struct command *command);

/* Writes the words of an option or of a verb's operands, separated by blanks. */
void completion_write_option_words(FILE *out, const char *name);
void completion_write_operand_words(FILE *out, const struct command *command);

/* Calls `fn` for each option name that takes a value, each name once. */
void completion_each_valued(void (*fn)(FILE *out, const char *name), FILE *out);

/* A whole script. Bash and zsh share their tables. */
void completion_write_tables(FILE *out);
void completion_write_bash(FILE *out);
void completion_write_zsh(FILE *out);
void completion_write_fish(FILE *out);

/*
 * libyaml's events of one text, without what no file of ours may hold: anchors and aliases, tags
 * other than the core ones, bytes that are not UTF-8. JSON is read as YAML. Messages begin with the
 * line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <yaml.h>

#include <skrull/error.h>

struct yaml_reader {
    yaml_parser_t parser;
    char *text;               /* owned */
    const char *begin;        /* of what libyaml reads, in the text */
    struct skrull_error *err; /* borrowed, nullable */
};

/* Copies `text`. RESOURCE_EXHAUSTED: out of memory; INVALID_ARGUMENT: not UTF-8. */
int yaml_reader_init(struct yaml_reader *reader, const char *text, size_t len,
                     struct skrull_error *err);
void yaml_reader_deinit(struct yaml_reader *reader);

/* The next event, to be deleted by the caller where this succeeds. */
int yaml_reader_next(struct yaml_reader *reader, yaml_event_t *ret);

/* Passes over the value that `first` begins, whatever is inside; `first` stays the caller's. */
int yaml_reader_skip(struct yaml_reader *reader, const yaml_event_t *first);

/* The line of an event, from 1. */
size_t yaml_event_line(const yaml_event_t *event);

/* A plain scalar that says "not given": empty, ~ or null. */
bool yaml_event_is_null(const yaml_event_t *event);

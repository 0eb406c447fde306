/* One option and how a value is put into the configuration: shared by the command line and the
 * file. */
#pragma once

#include "config/config.h"

enum option_kind {
    OPTION_TEXT,
    OPTION_LIST,
    OPTION_NUMBER,
    OPTION_FLAG,
    OPTION_WORD,
    OPTION_UNBUILT,
};

struct option {
    const char *name; /* "data-root" */
    enum option_kind kind;
    size_t offset;        /* in struct config */
    const char *argument; /* "DIR"; the words of a WORD */
    const char *default_text;
    uint64_t min, max; /* of a NUMBER */
    const char *help;
};

/* The table; ends with name NULL. */
extern const struct option config_options[];

/* By name, with "-" or "_"; NULL: unknown. */
const struct option *option_find(const char *name, size_t len);

/* Sets defaults. */
int option_defaults(struct arena *arena, struct config *config, struct skrull_error *err);

/*
 * Sets one value (a LIST: adds it). `value` is kept, not copied. `where` is what a message names
 * ("--log-level", "line 3: log_level").
 */
int option_set(struct arena *arena, struct config *config, const struct option *option,
               const char *where, const char *value, struct skrull_error *err);

/* Reads a YAML file; options already set in `is_set` (a bit per place in the table) are only
 * checked. */
int option_file_read(struct arena *arena, const char *path, uint64_t is_set, struct config *config,
                     struct skrull_error *err);

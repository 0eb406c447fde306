/* options.def as a table, and values into the configuration. */
#include "config/option.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"

const struct option config_options[] = {
#define X(name, kind, field, argument, default_text, min, max, help)                               \
    {#name, OPTION_##kind, offsetof(struct config, field), argument, default_text, min, max, help},
#include "config/options.def"
#undef X
    {NULL, OPTION_FLAG, 0, NULL, NULL, 0, 0, NULL},
};

const struct option *option_find(const char *name, size_t len)
{
    for (const struct option *option = config_options; option->name; option++) {
        size_t i = 0;

        if (strlen(option->name) != len) {
            continue;
        }
        while (i < len &&
               (option->name[i] == name[i] || (option->name[i] == '-' && name[i] == '_'))) {
            i++;
        }
        if (i == len) {
            return option;
        }
    }
    return NULL;
}

static int set_number(const struct option *option, const char *where, const char *value,
                      uint64_t *ret, struct skrull_error *err)
{
    unsigned long long number = 0;
    char *end = NULL;

    errno = 0;
    if (value[0] >= '0' && value[0] <= '9') {
        number = strtoull(value, &end, 10);
    }
    if (!end || *end != '\0') {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s: %s is not a number", where,
                                value);
    }
    if (errno != 0 || number < option->min || number > option->max) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %s is out of range, %llu to %llu are allowed", where, value,
                                (unsigned long long)option->min, (unsigned long long)option->max);
    }
    *ret = number;
    return 0;
}

static int set_flag(const char *where, const char *value, bool *ret, struct skrull_error *err)
{
    if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %s is neither true nor false", where, value);
    }
    *ret = strcmp(value, "true") == 0;
    return 0;
}

static bool is_word_of(const char *words, const char *value)
{
    size_t len = strlen(value);

    if (len == 0 || strchr(value, '|')) {
        return false;
    }
    for (const char *word = words; word; word = strchr(word, '|')) {
        word += *word == '|';
        if (strncmp(word, value, len) == 0 && (word[len] == '|' || word[len] == '\0')) {
            return true;
        }
    }
    return false;
}

static int add(struct arena *arena, struct config_list *list, const char *value,
               struct skrull_error *err)
{
    const char **items = ARENA_ARRAY(arena, const char *, list->n + 1);

    if (!items) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    if (list->n > 0) {
        memcpy(items, list->items, list->n * sizeof(*items));
    }
    items[list->n] = value;
    list->items = items;
    list->n++;
    return 0;
}

int option_set(struct arena *arena, struct config *config, const struct option *option,
               const char *where, const char *value, struct skrull_error *err)
{
    void *field = (char *)config + option->offset;

    switch (option->kind) {
    case OPTION_NUMBER:
        return set_number(option, where, value, (uint64_t *)field, err);
    case OPTION_FLAG:
        return set_flag(where, value, (bool *)field, err);
    case OPTION_UNBUILT:
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s: %s is not built yet", where,
                                value);
    case OPTION_WORD:
        if (!is_word_of(option->argument, value)) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s: %s is not one of %s",
                                    where, value, option->argument);
        }
        break;
    case OPTION_TEXT:
    case OPTION_LIST:
        if (value[0] == '\0') {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s: empty", where);
        }
        break;
    }
    if (option->kind == OPTION_LIST) {
        return add(arena, (struct config_list *)field, value, err);
    }
    *(const char **)field = value;
    return 0;
}

int option_defaults(struct arena *arena, struct config *config, struct skrull_error *err)
{
    memset(config, 0, sizeof(*config));
    for (const struct option *option = config_options; option->name; option++) {
        int code = 0;

        if (option->default_text[0] != '\0') {
            code = option_set(arena, config, option, option->name, option->default_text, err);
        } else if (option->kind == OPTION_TEXT || option->kind == OPTION_UNBUILT) {
            *(const char **)(void *)((char *)config + option->offset) = "";
        }
        if (code < 0) {
            return code;
        }
    }
    return 0;
}

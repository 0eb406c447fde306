/*
 * The configuration file: one YAML mapping, keys as the options. Values are scalars, or a sequence
 * of them for an option that may be repeated.
 */
#include "config/option.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <yaml.h>

#include "arena.h"
#include "cleanup.h"

#define MAX_FILE_BYTES ((size_t)1 << 20)

struct reader {
    struct arena *arena;
    const char *path;
    uint64_t is_set, is_seen; /* bits by place in the table */
    struct config *config;
    yaml_document_t *document;
    struct skrull_error *err;
};

static int read_all(const char *path, struct arena *arena, char **ret_text, size_t *ret_len,
                    struct skrull_error *err)
{
    _cleanup_(cleanup_file) FILE *file = fopen(path, "re");
    char *text;

    if (!file) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "--config: %s: %s", path,
                                strerror(errno));
    }
    text = arena_alloc(arena, 1, MAX_FILE_BYTES + 1);
    if (!text) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    *ret_len = fread(text, 1, MAX_FILE_BYTES + 1, file);
    if (ferror(file)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "--config: %s: cannot be read",
                                path);
    }
    if (*ret_len > MAX_FILE_BYTES) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "--config: %s: more than %zu bytes", path, MAX_FILE_BYTES);
    }
    *ret_text = text;
    return 0;
}

static int at(const struct reader *reader, const yaml_node_t *node, const char *what)
{
    return skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT, "%s: line %zu: %s",
                            reader->path, node->start_mark.line + 1, what);
}

/* One scalar of an option; an option of the command line is only checked. */
static int read_scalar(struct reader *reader, const struct option *option, bool is_overridden,
                       const yaml_node_t *node)
{
    struct config unused = {.config = ""};
    char where[128];
    const char *value;

    if (node->type != YAML_SCALAR_NODE) {
        return at(reader, node, "a scalar is expected");
    }
    value = arena_strndup(reader->arena, (const char *)node->data.scalar.value,
                          node->data.scalar.length);
    if (!value) {
        return skrull_error_set(reader->err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    if (strlen(value) != node->data.scalar.length) {
        return at(reader, node, "a NUL byte");
    }
    (void)snprintf(where, sizeof(where), "%.80s: line %zu: %s", reader->path,
                   node->start_mark.line + 1, option->name);
    return option_set(reader->arena, is_overridden ? &unused : reader->config, option, where, value,
                      reader->err);
}

static int read_option(struct reader *reader, const struct option *option, const yaml_node_t *key,
                       const yaml_node_t *value)
{
    uint64_t bit = (uint64_t)1 << (option - config_options);
    bool is_overridden = (reader->is_set & bit) != 0;
    int code = 0;

    if (reader->is_seen & bit) {
        return at(reader, key, "a key stands twice");
    }
    reader->is_seen |= bit;
    if (strcmp(option->name, "config") == 0 || strcmp(option->name, "help") == 0 ||
        strcmp(option->name, "version") == 0) {
        return at(reader, key, "this option is for the command line only");
    }
    if (option->kind != OPTION_LIST || value->type != YAML_SEQUENCE_NODE) {
        return read_scalar(reader, option, is_overridden, value);
    }
    for (const yaml_node_item_t *item = value->data.sequence.items.start;
         code == 0 && item < value->data.sequence.items.top; item++) {
        code = read_scalar(reader, option, is_overridden,
                           yaml_document_get_node(reader->document, *item));
    }
    return code;
}

static int read_mapping(struct reader *reader, const yaml_node_t *root)
{
    if (!root) {
        return 0; /* an empty file */
    }
    if (root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0) {
        return 0;
    }
    if (root->type != YAML_MAPPING_NODE) {
        return at(reader, root, "a mapping of options is expected");
    }
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(reader->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(reader->document, pair->value);
        const struct option *option = NULL;
        int code;

        if (key->type == YAML_SCALAR_NODE) {
            option = option_find((const char *)key->data.scalar.value, key->data.scalar.length);
        }
        if (!option) {
            return skrull_error_set(
                reader->err, SKRULL_ERR_INVALID_ARGUMENT, "%s: line %zu: unknown key %.80s",
                reader->path, key->start_mark.line + 1,
                key->type == YAML_SCALAR_NODE ? (const char *)key->data.scalar.value : "");
        }
        code = read_option(reader, option, key, value);
        if (code < 0) {
            return code;
        }
    }
    return 0;
}

int option_file_read(struct arena *arena, const char *path, uint64_t is_set, struct config *config,
                     struct skrull_error *err)
{
    struct reader reader = {
        .arena = arena, .path = path, .is_set = is_set, .config = config, .err = err};
    yaml_parser_t parser;
    yaml_document_t document;
    char *text = NULL;
    size_t len = 0;
    int code = read_all(path, arena, &text, &len, err);

    if (code < 0) {
        return code;
    }
    if (!yaml_parser_initialize(&parser)) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    if (!yaml_parser_load(&parser, &document)) {
        code = skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s: line %zu: %s", path,
                                parser.problem_mark.line + 1,
                                parser.problem ? parser.problem : "not YAML");
    } else {
        reader.document = &document;
        code = read_mapping(&reader, yaml_document_get_root_node(&document));
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    return code;
}

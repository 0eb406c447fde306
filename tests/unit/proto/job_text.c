/* Job files for tests, see job_text.h. */
#include "job_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_KEYS 32

static const struct given required[] = {{"name", "tiny"},        {"model.preset", "qwen2.5-0.5b"},
                                        {"parallel.dp", "4"},    {"parallel.cp", "8"},
                                        {"batch.global", "256"}, {"batch.bucket_tokens", "26624"},
                                        {"data.index", "a.txt"}};

static const char *const sections[] = {"",         "model", "training", "hardware",
                                       "parallel", "batch", "data"};

void job_text_camel(const char *snake, char *ret, size_t size)
{
    size_t used = 0;

    for (; *snake && used + 1 < size; snake++) {
        if (*snake == '_' && snake[1]) {
            snake++;
            ret[used++] = (char)(*snake - 'a' + 'A');
        } else {
            ret[used++] = *snake;
        }
    }
    ret[used] = '\0';
}

static bool is_same(const char *path, const char *other)
{
    char camel[128];

    job_text_camel(path, camel, sizeof(camel));
    return strcmp(path, other) == 0 || strcmp(camel, other) == 0;
}

/* The required keys that are not given, and the given ones; a NULL value is not counted. */
static size_t merge(const struct given *given, struct given keys[MAX_KEYS])
{
    size_t n_keys = 0;

    for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
        const struct given *other = given;

        while (other && other->path && !is_same(required[i].path, other->path)) {
            other++;
        }
        if (!other || !other->path) {
            keys[n_keys++] = required[i];
        }
    }
    for (; given && given->path && n_keys < MAX_KEYS; given++) {
        if (given->value) {
            keys[n_keys++] = *given;
        }
    }
    return n_keys;
}

/* Whether a key belongs to a section; *ret_name is its last name. */
static bool is_in(const char *path, const char *section, const char **ret_name)
{
    const char *dot = strchr(path, '.');
    const size_t len = strlen(section);

    *ret_name = dot ? dot + 1 : path;
    return dot ? strlen(section) == (size_t)(dot - path) && strncmp(path, section, len) == 0
               : len == 0;
}

char *job_text_make(const struct given *given)
{
    struct given keys[MAX_KEYS];
    const size_t n_keys = merge(given, keys);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out) {
        abort();
    }
    for (size_t s = 0; s < sizeof(sections) / sizeof(sections[0]); s++) {
        const bool is_data = strcmp(sections[s], "data") == 0;
        bool is_first = true;

        for (size_t i = 0; i < n_keys; i++) {
            const char *name;

            if (!is_in(keys[i].path, sections[s], &name)) {
                continue;
            }
            if (is_first && sections[s][0]) {
                (void)fprintf(out, "%s:\n", sections[s]);
            }
            (void)fprintf(out, "%s%s: %s\n",
                          !sections[s][0]       ? ""
                          : is_data && is_first ? "- "
                                                : "  ",
                          name, keys[i].value);
            is_first = false;
        }
    }
    (void)fclose(out);
    return text;
}

size_t job_text_line(const char *text, const char *name)
{
    const size_t len = strlen(name);
    size_t line = 1;

    for (; *text; text++, line++) {
        text += strspn(text, " -");
        if (strncmp(text, name, len) == 0 && text[len] == ':') {
            return line;
        }
        text += strcspn(text, "\n");
        if (!*text) {
            break;
        }
    }
    return 0;
}

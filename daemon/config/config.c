/* The command line, defaults from the environment, and what only the whole can be judged by. */
#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "config/listen_address.h"
#include "config/option.h"

struct args {
    int argc, i;
    char *const *argv;
};

/* Splits "--name=value" or "--name" "value". */
static int next_option(struct args *args, const struct option **ret_option, const char **ret_value,
                       struct skrull_error *err)
{
    const char *arg = args->argv[args->i++];
    const char *equals = strchr(arg, '=');
    size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
    const struct option *option = NULL;

    if (strcmp(arg, "-h") == 0) {
        arg = "--help";
        len = strlen(arg);
    }
    if (len > 2 && arg[0] == '-' && arg[1] == '-' && !memchr(arg, '_', len)) {
        option = option_find(arg + 2, len - 2);
    }
    if (!option) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%.*s: no such option; --help lists them",
                                (int)(len > 80 ? 80 : len), arg);
    }
    *ret_option = option;
    if (equals) {
        *ret_value = equals + 1;
        return 0;
    }
    if (option->kind == OPTION_FLAG) {
        *ret_value = "true";
        return 0;
    }
    if (args->i >= args->argc) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "--%s: a value is missing: %s",
                                option->name, option->argument);
    }
    *ret_value = args->argv[args->i++];
    return 0;
}

static int parse_args(struct arena *arena, struct args args, uint64_t *ret_set,
                      struct config *config, struct skrull_error *err)
{
    *ret_set = 0;
    while (args.i < args.argc) {
        const struct option *option = NULL;
        const char *value = NULL;
        char where[64];
        int code = next_option(&args, &option, &value, err);

        if (code == 0) {
            (void)snprintf(where, sizeof(where), "--%s", option->name);
            code = option_set(arena, config, option, where, value, err);
        }
        if (code < 0) {
            return code;
        }
        *ret_set |= (uint64_t)1 << (option - config_options);
    }
    return 0;
}

static char *join(struct arena *arena, const char *a, const char *b, const char *c)
{
    size_t len = strlen(a) + strlen(b) + strlen(c) + 1;
    char *text = arena_alloc(arena, 1, len);

    if (text) {
        (void)snprintf(text, len, "%s%s%s", a, b, c);
    }
    return text;
}

static bool is_given(const char *text)
{
    return text && text[0] != '\0';
}

static const char *default_listen(struct arena *arena, const struct config_env *env)
{
    char uid[24];

    if (is_given(env->xdg_runtime_dir)) {
        return join(arena, "unix:", env->xdg_runtime_dir, "/skrull/skrulld.sock");
    }
    if (env->uid == 0) {
        return "unix:/run/skrull/skrulld.sock";
    }
    (void)snprintf(uid, sizeof(uid), "%llu", (unsigned long long)env->uid);
    return join(arena, "unix:/tmp/skrull-", uid, "/skrulld.sock");
}

static const char *default_state(struct arena *arena, const struct config_env *env)
{
    if (is_given(env->state_directory)) {
        /* systemd separates several by colons; the first is ours. */
        const char *first =
            arena_strndup(arena, env->state_directory, strcspn(env->state_directory, ":"));

        return first ? join(arena, "sqlite:", first, "/skrull.db") : NULL;
    }
    if (is_given(env->xdg_state_home)) {
        return join(arena, "sqlite:", env->xdg_state_home, "/skrull/skrull.db");
    }
    if (is_given(env->home)) {
        return join(arena, "sqlite:", env->home, "/.local/state/skrull/skrull.db");
    }
    return "";
}

static int fill_defaults(struct arena *arena, const struct config_env *env, struct config *config,
                         struct skrull_error *err)
{
    if (config->listen.n == 0) {
        const char *address = default_listen(arena, env);

        config->listen.items = ARENA_ARRAY(arena, const char *, 1);
        if (!address || !config->listen.items) {
            return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        }
        config->listen.items[0] = address;
        config->listen.n = 1;
    }
    if (config->state[0] == '\0') {
        config->state = default_state(arena, env);
        config->is_state_default = true;
        if (!config->state) {
            return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        }
        if (config->state[0] == '\0') {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "--state: no default, HOME is not set: give sqlite:PATH");
        }
    }
    return 0;
}

static int check(const struct config *config, struct skrull_error *err)
{
    for (size_t i = 0; i < config->listen.n; i++) {
        struct listen_address address;
        int code = listen_address_parse(config->listen.items[i], &address, err);

        if (code < 0) {
            return skrull_error_prefix(err, code, "--listen");
        }
        if (!address.is_local && !config->insecure) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "--listen: %s is not a loopback address, and TLS is not built "
                                    "yet: --insecure allows it in plain text",
                                    config->listen.items[i]);
        }
    }
    if (strncmp(config->state, "etcd://", strlen("etcd://")) == 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "--state: %s is not built yet",
                                config->state);
    }
    if (strncmp(config->state, "sqlite:", strlen("sqlite:")) != 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "--state: %s is not a state: sqlite:PATH is", config->state);
    }
    return 0;
}

int config_parse(struct arena *arena, int argc, char *const *argv, const struct config_env *env,
                 struct config *ret_config, struct skrull_error *err)
{
    struct args args = {.argc = argc, .argv = argv};
    struct config config;
    uint64_t is_set;
    int code = option_defaults(arena, &config, err);

    if (code == 0) {
        code = parse_args(arena, args, &is_set, &config, err);
    }
    if (code == 0 && !config.help && !config.version) {
        if (config.config[0] != '\0') {
            code = option_file_read(arena, config.config, is_set, &config, err);
        }
        if (code == 0) {
            code = fill_defaults(arena, env, &config, err);
        }
        if (code == 0) {
            code = check(&config, err);
        }
    }
    if (code == 0) {
        *ret_config = config;
    }
    return code;
}

static void print_option(FILE *out, const struct option *option)
{
    char left[64];

    (void)snprintf(left, sizeof(left), "--%s %s", option->name, option->argument);
    (void)fprintf(out, "  %-36s %s", left, option->help);
    if (option->default_text[0] != '\0') {
        (void)fprintf(out, " (%s)", option->default_text);
    }
    if (option->kind == OPTION_LIST) {
        (void)fprintf(out, "; may be repeated");
    }
    if (option->kind == OPTION_UNBUILT) {
        (void)fprintf(out, "; not built yet");
    }
    (void)fputc('\n', out);
}

char *config_help(void)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    if (!out) {
        return NULL;
    }
    (void)fprintf(out, "Usage: skrulld [OPTION]...\n"
                       "Plans the steps of long-context fine-tuning jobs and streams the plans to "
                       "their workers.\n\n");
    for (const struct option *option = config_options; option->name; option++) {
        print_option(out, option);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

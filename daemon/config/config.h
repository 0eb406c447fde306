/*
 * What the daemon was told: options.def from the command line, and from a YAML file with the same
 * keys.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

struct arena;

struct config_list {
    const char **items; /* [n] */
    size_t n;
};

/* Fields as options.def names them; strings live in the arena or are argv's. */
struct config {
    const char *config; /* "": no file */
    struct config_list listen, data_root;
    const char *http, *state, *tls_cert, *tls_key, *tls_client_ca, *token_file;
    bool insecure, reflection, version, help;
    uint64_t drain_timeout_s, heartbeat_s, plan_threads;
    const char *log_level, *log_format;
    bool is_state_default; /* nobody named a state */
};

/* Where defaults come from. */
struct config_env {
    const char *xdg_runtime_dir, *state_directory, *xdg_state_home, *home; /* NULL: not set */
    uint64_t uid;
};

/*
 * Reads argv ([argc], without the program's name) and the file that it names. INVALID_ARGUMENT
 * names the option, or the key and its line, and what is allowed; "OPTION: VALUE is not built yet"
 * for those to come. With `help` or `version` nothing else is checked.
 */
int config_parse(struct arena *arena, int argc, char *const *argv, const struct config_env *env,
                 struct config *ret_config, struct skrull_error *err);

/* The usage text, one option a line; malloc'd. NULL: out of memory. */
char *config_help(void);

/*
 * Reads the config.json of models of Llama's kind (Llama, Mistral, Qwen2): RMSNorm, rotary
 * positions, grouped queries, gated MLP with SiLU. What would make it another model is refused, not
 * ignored.
 */
#include "model_config.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

/* Sizes above are no decoder of this kind; products of two fit 64 bits. */
#define MAX_SIZE (1u << 24)

static const struct model_config tiny = {
    .hidden = 32,
    .layers = 2,
    .heads = 4,
    .kv_heads = 2,
    .head_dim = 16,
    .intermediate = 64,
    .vocabulary = 256,
    .norm_eps = 1e-5F,
    .rope_base = 10000.0F,
    .has_tied_head = true,
};

/* The same with heads as GPUs have kernels for. */
#define TINY64_HIDDEN 64u
#define TINY64_HEAD_DIM 64u

struct reader {
    const char *path;
    const json_t *json;
    struct skrull_error *err;
};

static int refuse(const struct reader *reader, const char *key, const char *why)
{
    return skrull_error_set(reader->err, SKRULL_ERR_UNIMPLEMENTED, "%s: %s: %s", reader->path, key,
                            why);
}

/* A size; absent or null: `absent`, where that is not 0. */
static int read_size(const struct reader *reader, const char *key, uint32_t absent, uint32_t *ret)
{
    const json_t *value = json_object_get(reader->json, key);

    if ((!value || json_is_null(value)) && absent) {
        *ret = absent;
        return 0;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        json_integer_value(value) > MAX_SIZE) {
        return skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %s: not a number from 1 to %u", reader->path, key, MAX_SIZE);
    }
    *ret = (uint32_t)json_integer_value(value);
    return 0;
}

static int read_number(const struct reader *reader, const char *key, double absent, float *ret)
{
    const json_t *value = json_object_get(reader->json, key);
    double number = value && !json_is_null(value) ? json_number_value(value) : absent;

    if ((value && !json_is_null(value) && !json_is_number(value)) || !(number >= (double)FLT_MIN) ||
        number > (double)FLT_MAX) {
        return skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %s: not a positive number that a float holds", reader->path,
                                key);
    }
    *ret = (float)number;
    return 0;
}

static int read_flag(const struct reader *reader, const char *key, bool absent, bool *ret)
{
    const json_t *value = json_object_get(reader->json, key);

    if (value && !json_is_null(value) && !json_is_boolean(value)) {
        return skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: %s: neither true nor false", reader->path, key);
    }
    *ret = json_is_boolean(value) ? json_is_true(value) : absent;
    return 0;
}

/* Is the text under `key` one of `words`? Absent is. */
static bool is_one_of(const struct reader *reader, const char *key, const char *const *words)
{
    const json_t *value = json_object_get(reader->json, key);

    if (!value || json_is_null(value)) {
        return true;
    }
    for (size_t i = 0; words[i]; i++) {
        if (json_is_string(value) && strcmp(json_string_value(value), words[i]) == 0) {
            return true;
        }
    }
    return false;
}

static int check_kind(const struct reader *reader)
{
    static const char *const types[] = {"llama", "mistral", "qwen2", NULL};
    static const char *const acts[] = {"silu", "swish", NULL};
    static const char *const experts[] = {"num_experts", "num_local_experts", "n_routed_experts"};
    const json_t *scaling = json_object_get(reader->json, "rope_scaling");
    bool has_mlp_bias;
    int rc = read_flag(reader, "mlp_bias", false, &has_mlp_bias);

    if (rc < 0) {
        return rc;
    }
    if (!is_one_of(reader, "model_type", types)) {
        return refuse(reader, "model_type", "llama, mistral and qwen2 are built");
    }
    if (!is_one_of(reader, "hidden_act", acts)) {
        return refuse(reader, "hidden_act", "silu is built");
    }
    if (scaling && !json_is_null(scaling)) {
        return refuse(reader, "rope_scaling", "scaled positions are not built");
    }
    if (has_mlp_bias) {
        return refuse(reader, "mlp_bias", "not built");
    }
    for (size_t i = 0; i < sizeof(experts) / sizeof(experts[0]); i++) {
        if (json_object_get(reader->json, experts[i])) {
            return refuse(reader, experts[i], "experts are not built");
        }
    }
    return 0;
}

static int read_sizes(const struct reader *reader, struct model_config *config)
{
    int rc = read_size(reader, "hidden_size", 0, &config->hidden);

    if (rc == 0) {
        rc = read_size(reader, "num_hidden_layers", 0, &config->layers);
    }
    if (rc == 0) {
        rc = read_size(reader, "num_attention_heads", 0, &config->heads);
    }
    if (rc == 0) {
        rc = read_size(reader, "num_key_value_heads", config->heads, &config->kv_heads);
    }
    if (rc == 0) {
        rc = read_size(reader, "head_dim", config->hidden / config->heads, &config->head_dim);
    }
    if (rc == 0) {
        rc = read_size(reader, "intermediate_size", 0, &config->intermediate);
    }
    if (rc == 0) {
        rc = read_size(reader, "vocab_size", 0, &config->vocabulary);
    }
    if (rc == 0 && (config->heads % config->kv_heads != 0 || config->head_dim % 2 != 0)) {
        rc = skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                              "%s: %" PRIu32 " heads of %" PRIu32 ", %" PRIu32
                              " key heads: key heads must divide heads, and a head be even",
                              reader->path, config->heads, config->head_dim, config->kv_heads);
    }
    return rc;
}

/* Qwen2 names a window that counts only where another key says so. */
static int read_window(const struct reader *reader, bool is_qwen2, uint32_t *ret)
{
    const json_t *window = json_object_get(reader->json, "sliding_window");
    bool is_used;
    int rc = read_flag(reader, "use_sliding_window", !is_qwen2, &is_used);

    return rc == 0 && is_used && window && !json_is_null(window)
               ? read_size(reader, "sliding_window", 0, ret)
               : rc;
}

static int read_all(const struct reader *reader, struct model_config *config)
{
    const json_t *type = json_object_get(reader->json, "model_type");
    bool is_qwen2 = json_is_string(type) && strcmp(json_string_value(type), "qwen2") == 0;
    int rc = check_kind(reader);

    rc = rc ? rc : read_sizes(reader, config);
    rc = rc ? rc : read_number(reader, "rms_norm_eps", 1e-6, &config->norm_eps);
    rc = rc ? rc : read_number(reader, "rope_theta", 10000.0, &config->rope_base);
    rc = rc ? rc : read_window(reader, is_qwen2, &config->window);
    rc = rc ? rc : read_flag(reader, "tie_word_embeddings", false, &config->has_tied_head);
    rc = rc ? rc : read_flag(reader, "attention_bias", is_qwen2, &config->has_qkv_bias);
    if (rc == 0 && config->has_qkv_bias && !is_qwen2) {
        rc = refuse(reader, "attention_bias", "built for qwen2 only");
    }
    return rc;
}

/* A regular file: anything else may never end. *ret is NULL where it is no JSON, by `fault`. */
static int load(const struct reader *reader, json_t **ret, json_error_t *fault)
{
    struct stat info;
    int fd = open(reader->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = 0;

    if (fd < 0 || fstat(fd, &info) < 0) {
        rc = skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT, "--model: %s: %s",
                              reader->path, strerror(errno));
    } else if (!S_ISREG(info.st_mode)) {
        rc = skrull_error_set(reader->err, SKRULL_ERR_INVALID_ARGUMENT,
                              "--model: %s: not a regular file", reader->path);
    } else {
        *ret = json_loadfd(fd, JSON_REJECT_DUPLICATES, fault);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc;
}

int model_config_read(const char *model, struct model_config *ret, struct skrull_error *err)
{
    struct reader reader = {.path = model, .err = err};
    struct model_config config = {0};
    json_error_t fault;
    json_t *json = NULL;
    int rc;

    if (strcmp(model, "tiny") == 0 || strcmp(model, "tiny64") == 0) {
        *ret = tiny;
        if (strcmp(model, "tiny64") == 0) {
            ret->hidden = TINY64_HIDDEN;
            ret->head_dim = TINY64_HEAD_DIM;
        }
        return 0;
    }
    rc = load(&reader, &json, &fault);
    if (rc < 0) {
        return rc;
    }
    if (!json || !json_is_object(json)) {
        rc = skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "--model: %s: line %d: %s", model,
                              json ? 1 : fault.line, json ? "not an object" : fault.text);
        json_decref(json);
        return rc;
    }
    reader.json = json;
    rc = read_all(&reader, &config);
    json_decref(json);
    if (rc == 0) {
        *ret = config;
    }
    return rc;
}

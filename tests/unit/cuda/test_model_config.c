/* Tests of worker/model_config.c. */
#include "model_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "temporary.h"

#define SIZES                                                                                      \
    "\"hidden_size\": 64, \"num_hidden_layers\": 3, \"num_attention_heads\": 8, "                  \
    "\"num_key_value_heads\": 2, \"intermediate_size\": 96, \"vocab_size\": 1000"

static struct temporary folder;

/* Reads a config of this content. */
static int read_text(const char *text, struct model_config *ret, struct skrull_error *err)
{
    char path[TEMPORARY_PATH_SIZE];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/config.json", folder.path);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return model_config_read(path, ret, err);
}

static void test_model_config_read__qwen2(void **state)
{
    struct model_config config;
    struct skrull_error err;

    (void)state;
    assert_int_equal(read_text("{\"model_type\": \"qwen2\", \"rope_theta\": 1000000.0, "
                               "\"tie_word_embeddings\": true, \"sliding_window\": 32, "
                               "\"use_sliding_window\": false, " SIZES "}",
                               &config, &err),
                     0);
    assert_int_equal(config.hidden, 64);
    assert_int_equal(config.layers, 3);
    assert_int_equal(config.head_dim, 8);
    assert_int_equal(config.kv_heads, 2);
    assert_int_equal(config.window, 0);
    assert_true(config.has_tied_head && config.has_qkv_bias);
    assert_true(config.rope_base > 999999.0F);
}

static void test_model_config_read__mistral(void **state)
{
    struct model_config config;

    (void)state;
    assert_int_equal(read_text("{\"model_type\": \"mistral\", \"sliding_window\": 4096, "
                               "\"head_dim\": 16, \"rope_scaling\": null, " SIZES "}",
                               &config, NULL),
                     0);
    assert_int_equal(config.window, 4096);
    assert_int_equal(config.head_dim, 16);
    assert_false(config.has_tied_head || config.has_qkv_bias);
}

static void test_model_config_read__refuses_other_models(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"model_type\": \"gpt2\", " SIZES "}", "model_type"},
        {"{\"rope_scaling\": {\"type\": \"yarn\"}, " SIZES "}", "rope_scaling"},
        {"{\"hidden_act\": \"gelu\", " SIZES "}", "hidden_act"},
        {"{\"num_experts\": 8, " SIZES "}", "num_experts"},
        {"{\"mlp_bias\": true, " SIZES "}", "mlp_bias"},
        {"{\"mlp_bias\": 0, " SIZES "}", "mlp_bias: neither"},
        {"{\"tie_word_embeddings\": \"yes\", " SIZES "}", "tie_word_embeddings: neither"},
        {"{\"use_sliding_window\": 1, " SIZES "}", "use_sliding_window: neither"},
        {"{\"head_dim\": 7, " SIZES "}", "a head be even"},
        {"{\"rms_norm_eps\": -1, " SIZES "}", "rms_norm_eps"},
        {"{\"rms_norm_eps\": 1e-300, " SIZES "}", "rms_norm_eps"},
        {"{\"rope_theta\": 1e300, " SIZES "}", "rope_theta"},
        {"{\"hidden_size\": 64}", "num_hidden_layers"},
        {"{\"hidden_size\": 1e9}", "hidden_size"},
        {"[1]", "not an object"},
        {"{", "line"},
    };
    struct model_config config;
    struct skrull_error err;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(read_text(cases[i].text, &config, &err) < 0);
        if (!strstr(err.message, cases[i].message)) {
            fail_msg("%s: %s", cases[i].text, err.message);
        }
    }
    assert_true(model_config_read("/no-such/config.json", &config, &err) < 0);
    assert_non_null(strstr(err.message, "No such file"));
    assert_null(strstr(err.message, "line"));
    assert_true(model_config_read("/dev/zero", &config, &err) < 0);
    assert_non_null(strstr(err.message, "/dev/zero: not a regular file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_config_read__qwen2),
        cmocka_unit_test(test_model_config_read__mistral),
        cmocka_unit_test(test_model_config_read__refuses_other_models),
    };
    int n_failed;

    temporary_make(&folder);
    n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    temporary_remove(&folder);
    return n_failed;
}

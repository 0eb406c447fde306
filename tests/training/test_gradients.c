/*
 * The decoder's gradients against differences of its loss: weight by weight tensor, along the
 * gradient itself, where the loss must change by the gradient's length. Documents of several
 * lengths, padding, sliding windows, biases, tied and untied heads.
 */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "training.h"

static const struct training_sequence sequences[] = {
    {.index = 0, .length = 37}, {.index = 1, .length = 1}, {.index = 2, .length = 12}};

/* Loss of the batch; gradients stay in `training`. */
static double loss_of(struct training *training)
{
    double loss = 0;

    training->n_steps = 0;
    assert_int_equal(
        training_step_unscheduled(training, sequences, 3, SKRULL_LOSS_TOKEN_MEAN, &loss, NULL), 0);
    return loss;
}

/* The tensor [first, first + n): relative error of the gradient along itself. */
static double error_of(struct training *training, const float *weights, const float *gradients,
                       size_t first, size_t n)
{
    size_t bytes = training->shape.n_weights * sizeof(float);
    double length = 0, step, sides[2];

    for (size_t i = first; i < first + n; i++) {
        length += (double)gradients[i] * (double)gradients[i];
    }
    length = sqrt(length);
    if (length < 1e-6) {
        fail_msg("the weights at %zu have no gradient", first);
    }
    step = 2e-3;
    for (int side = 0; side < 2; side++) {
        memcpy(training->weights, weights, bytes);
        for (size_t i = first; i < first + n; i++) {
            training->weights[i] += (float)((side ? -step : step) * (double)gradients[i] / length);
        }
        sides[side] = loss_of(training);
    }
    return fabs((sides[0] - sides[1]) / (2 * step) - length) / fmax(length, 1e-2);
}

static void check_model(const struct model_config *model)
{
    const struct training_options options = {.model = *model, .eps = 1e-6F, .seed = 3};
    struct training training;
    struct token_source *tokens;
    float *weights, *gradients;
    size_t n;

    assert_int_equal(tokens_generated(model->vocabulary, &tokens, NULL), 0);
    assert_int_equal(training_init(&training, &options, NULL, tokens, NULL), 0);
    n = training.shape.n_weights;
    weights = calloc(n, sizeof(float));
    gradients = calloc(n, sizeof(float));
    assert_non_null(weights);
    assert_non_null(gradients);
    /* Biases and norms away from their first values, which are special. */
    for (size_t i = 0; i < n; i++) {
        weights[i] = training.weights[i] + 0.05F * sinf((float)i);
    }
    memcpy(training.weights, weights, n * sizeof(float));
    (void)loss_of(&training); /* the learning rate is 0 */
    memcpy(gradients, training.gradients, n * sizeof(float));
    for (uint32_t l = 0; l < model->layers; l++) {
        const struct layer_weights *layer = &training.shape.layers[l];
        const size_t starts[] = {layer->norm1,  layer->q,      layer->k,   layer->v,
                                 layer->q_bias, layer->v_bias, layer->o,   layer->norm2,
                                 layer->gate,   layer->up,     layer->down};

        for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
            double error = starts[i] == DECODER_NO_BIAS
                               ? 0
                               : error_of(&training, weights, gradients, starts[i], model->hidden);

            if (!(error < 0.01)) {
                fail_msg("layer %u, tensor %zu: off by %g", l, i, error);
            }
        }
    }
    assert_true(error_of(&training, weights, gradients, 0, n) < 0.01);
    assert_true(error_of(&training, weights, gradients, training.shape.norm, model->hidden) < 0.01);
    assert_true(error_of(&training, weights, gradients, training.shape.head,
                         (size_t)model->vocabulary * model->hidden) < 0.01);
    free(weights);
    free(gradients);
    training_deinit(&training);
    tokens_free(tokens);
}

static void test_decoder__gradients_are_differences(void **state)
{
    struct model_config model;

    (void)state;
    assert_int_equal(model_config_read("tiny", &model, NULL), 0);
    check_model(&model);
    model.has_qkv_bias = true;
    model.has_tied_head = false;
    model.window = 7;
    check_model(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decoder__gradients_are_differences),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

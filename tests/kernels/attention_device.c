/* Attention on devices: what is put there, run, fetched and compared. */
#include "kernels/attention_device.h"

#include <math.h>

#include "shim/shim.h"

/* The value of gradients before a run: small, so that adding it costs no digits. */
static float start_of(size_t i)
{
    return (float)(i % 5) / 4096.0F;
}

static void *own(struct attention_device *t, void *p)
{
    assert_true(t->n_owned < sizeof(t->owned) / sizeof(t->owned[0]));
    t->owned[t->n_owned++] = p;
    return p;
}

/* Rows of the dtype with gaps; values NULL: NaN. */
static void *put_rows(struct attention_device *t, const float *values, size_t n, size_t width)
{
    size_t stride = width + t->gap;
    float *spread = kernel_zeros(n * stride);
    void *p;

    for (size_t i = 0; i < n * stride; i++) {
        size_t column = i % stride;

        spread[i] =
            values && column < width ? values[i / stride * width + column] : __builtin_nanf("");
    }
    p = own(t, device_put_floats(t->device, t->dtype, spread, n * stride));
    free(spread);
    return p;
}

static float *put_start(struct attention_device *t, size_t n)
{
    float *values = kernel_zeros(n), *p;

    for (size_t i = 0; i < n; i++) {
        values[i] = start_of(i);
    }
    p = own(t, device_put(t->device, values, n * sizeof(float)));
    free(values);
    return p;
}

static float *put_doubles(struct attention_device *t, const double *values, size_t n, bool as_rows,
                          size_t width)
{
    float *floats = kernel_zeros(n);
    void *p;

    for (size_t i = 0; i < n; i++) {
        floats[i] = (float)values[i];
    }
    p = as_rows ? put_rows(t, floats, n / width, width)
                : own(t, device_put(t->device, floats, n * sizeof(float)));
    free(floats);
    return p;
}

static const int32_t *put_ints(struct attention_device *t, const int32_t *values, size_t n)
{
    return own(t, device_put(t->device, values, n * sizeof(int32_t)));
}

static void put_inputs(struct attention_device *t)
{
    const struct attention_case *c = t->c;
    struct skrull_attention *p = &t->params.forward;
    size_t q_width = (size_t)p->heads * p->head_dim, k_width = (size_t)p->kv_heads * p->head_dim;

    p->q_cu_rows = put_ints(t, c->q_cu_rows, c->n_sequences + 1);
    p->k_cu_rows = put_ints(t, c->k_cu_rows, c->n_sequences + 1);
    p->q_position = put_ints(t, c->q_position, c->n_q);
    p->k_position = put_ints(t, c->k_position, c->n_k);
    p->q = put_rows(t, c->q, c->n_q, q_width);
    p->k = put_rows(t, c->k, c->n_k, k_width);
    p->v = put_rows(t, c->v, c->n_k, k_width);
    if (t->gap) {
        p->q_stride = p->out_stride = q_width + t->gap;
        p->k_stride = p->v_stride = k_width + t->gap;
    }
}

void attention_device_init(struct attention_device *t, const struct device *device,
                           const struct attention_case *c, const struct attention_run *run)
{
    struct skrull_attention *p = &t->params.forward;
    size_t q_width = (size_t)c->shape.heads * c->shape.head_dim;
    size_t k_width = (size_t)c->shape.kv_heads * c->shape.head_dim, n_lse = c->n_q * c->shape.heads;

    *t = (struct attention_device){.device = device, .c = c, .dtype = run->dtype, .gap = run->gap};
    *p = attention_case_forward(c);
    p->dtype = run->dtype;
    put_inputs(t);
    if (!run->is_backward) {
        p->out = put_rows(t, NULL, c->n_q, q_width);
        p->lse = own(t, device_put(device, NULL, n_lse * sizeof(float)));
        return;
    }
    p->out = put_doubles(t, c->true_out, c->n_q * q_width, true, q_width);
    p->lse = put_doubles(t, c->true_lse, n_lse, false, 1);
    t->params.dout = put_rows(t, c->dout, c->n_q, q_width);
    t->params.dout_stride = p->out_stride;
    t->params.dlse =
        run->has_dlse ? own(t, device_put(device, c->dlse, n_lse * sizeof(float))) : NULL;
    t->params.dq = put_start(t, c->n_q * q_width);
    t->params.dk = put_start(t, c->n_k * k_width);
    t->params.dv = put_start(t, c->n_k * k_width);
}

void attention_device_deinit(struct attention_device *t)
{
    for (size_t i = 0; i < t->n_owned; i++) {
        device_free(t->device, t->owned[i]);
    }
}

void attention_device_check_forward(const struct attention_device *t)
{
    const struct attention_case *c = t->c;
    size_t width = (size_t)c->shape.heads * c->shape.head_dim, stride = width + t->gap;
    float *spread = device_get_floats(t->device, t->dtype, t->params.forward.out, c->n_q * stride);
    float *out = kernel_zeros(c->n_q * width), *lse = kernel_zeros(c->n_q * c->shape.heads);

    for (size_t i = 0; i < c->n_q * stride; i++) {
        if (i % stride < width) {
            out[i / stride * width + i % stride] = spread[i];
        } else {
            assert_true(isnan(spread[i]));
        }
    }
    device_get(t->device, lse, t->params.forward.lse, c->n_q * c->shape.heads * sizeof(float));
    kernel_assert_near("out", out, c->true_out, c->n_q * width, dtype_tolerance(t->dtype));
    kernel_assert_near("lse", lse, c->true_lse, c->n_q * c->shape.heads, 1e-5);
    for (size_t i = 0; i < c->n_q * width; i++) {
        assert_true(isfinite(c->true_lse[i / c->shape.head_dim]) || !(fabsf(out[i]) > 0.0F));
    }
    free(spread);
    free(out);
    free(lse);
}

/* A gradient less what it started from. */
static void check_gradient(const struct attention_device *t, const char *what, const float *is,
                           const double *should, size_t n)
{
    float *values = kernel_zeros(n);

    device_get(t->device, values, is, n * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        values[i] -= start_of(i);
    }
    kernel_assert_near(what, values, should, n, dtype_tolerance(t->dtype));
    free(values);
}

void attention_device_check_backward(const struct attention_device *t)
{
    const struct attention_case *c = t->c;
    size_t n_k = c->n_k * c->shape.kv_heads * c->shape.head_dim;

    check_gradient(t, "dq", t->params.dq, c->true_dq, c->n_q * c->shape.heads * c->shape.head_dim);
    check_gradient(t, "dk", t->params.dk, c->true_dk, n_k);
    check_gradient(t, "dv", t->params.dv, c->true_dv, n_k);
}

/* All outputs of a run, for comparison bit by bit; freed by the caller. */
static unsigned char *outputs_of(const struct attention_device *t, const struct attention_run *run,
                                 size_t *ret_bytes)
{
    const struct attention_case *c = t->c;
    size_t q_width = (size_t)c->shape.heads * c->shape.head_dim;
    size_t k_bytes = c->n_k * c->shape.kv_heads * c->shape.head_dim * sizeof(float);
    const struct {
        const void *p;
        size_t bytes;
    } forward[] = {{t->params.forward.out, c->n_q * (q_width + t->gap) * sizeof(uint16_t)},
                   {t->params.forward.lse, c->n_q * c->shape.heads * sizeof(float)},
                   {NULL, 0}},
      backward[] = {{t->params.dq, c->n_q * q_width * sizeof(float)},
                    {t->params.dk, k_bytes},
                    {t->params.dv, k_bytes}},
      *outputs = run->is_backward ? backward : forward;
    size_t bytes = outputs[0].bytes + outputs[1].bytes + outputs[2].bytes, at = 0;
    unsigned char *all = malloc(bytes + 1);

    assert_non_null(all);
    for (size_t i = 0; i < 3; i++) {
        device_get(t->device, all + at, outputs[i].p, outputs[i].bytes);
        at += outputs[i].bytes;
    }
    *ret_bytes = bytes;
    return all;
}

/* One run; its outputs, checked if nobody did before. */
static unsigned char *run_once(const struct device *device, const struct attention_case *c,
                               const struct attention_run *run, bool is_checked, size_t *ret_bytes)
{
    struct attention_device t;
    unsigned char *outputs;

    attention_device_init(&t, device, c, run);
    if (run->is_backward) {
        KERNEL_RUN(device->ops, attention_backward, &t.params);
    } else {
        KERNEL_RUN(device->ops, attention_forward, &t.params.forward);
    }
    if (!is_checked && run->is_backward) {
        attention_device_check_backward(&t);
    } else if (!is_checked) {
        attention_device_check_forward(&t);
    }
    outputs = outputs_of(&t, run, ret_bytes);
    attention_device_deinit(&t);
    return outputs;
}

void attention_device_hold(const struct device *device, const struct attention_case *c,
                           const struct attention_run *run)
{
    const int n_orders = run->is_brief ? 1 : 3;
    unsigned char *first = NULL;
    size_t bytes;

    shim_stats_take();
    for (int i = 0; i < n_orders; i++) {
        unsigned char *outputs;

        shim_set_order(run->is_brief ? run->order : i);
        outputs = run_once(device, c, run, i > 0, &bytes);
        if (i == 0) {
            first = outputs;
        } else {
            assert_memory_equal(outputs, first, bytes);
            free(outputs);
        }
    }
    shim_set_order(-1);
    assert_int_equal(shim_stats_take().ldmatrix_conflicts, 0);
    free(first);
}

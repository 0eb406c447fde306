/*
 * Attention by its definition, one query and one key at a time, in double. The mask is written as
 * the documentation has it, not as the operators compute it.
 */
#include "kernels/attention_case.h"

#include <math.h>

/* Appends positions [begin, end) of a sequence, then `padding` rows without. */
static size_t append(int32_t *position, size_t n, uint32_t begin, uint32_t end, uint32_t padding)
{
    for (uint32_t p = begin; p < end; p++) {
        position[n++] = (int32_t)p;
    }
    for (uint32_t p = 0; p < padding; p++) {
        position[n++] = SKRULL_NO_POSITION;
    }
    return n;
}

static size_t append_chunk(int32_t *position, size_t n, uint32_t length, uint32_t i_chunk)
{
    uint32_t chunk = (length + 7) / 8, begin = i_chunk * chunk, end = begin + chunk;

    begin = begin < length ? begin : length;
    end = end < length ? end : length;
    return append(position, n, begin, end, chunk - (end - begin));
}

static size_t append_holes(int32_t *position, size_t n, uint32_t length)
{
    for (uint32_t p = 0; p < length; p++) {
        position[n++] = p / 7 % 3 == 1 ? SKRULL_NO_POSITION : (int32_t)p;
    }
    return n;
}

static size_t append_side(int32_t *position, size_t n, uint32_t length, enum attention_side side)
{
    switch (side) {
    case SIDE_NONE:
        return n;
    case SIDE_WHOLE:
        return append(position, n, 0, length, 2);
    case SIDE_FIRST:
        return append_chunk(position, append_chunk(position, n, length, 0), length, 7);
    case SIDE_SECOND:
        return append_chunk(position, append_chunk(position, n, length, 1), length, 6);
    case SIDE_BEGIN:
        return append(position, n, 0, length / 2, 0);
    case SIDE_END:
        return append(position, n, length / 2, length, 1);
    case SIDE_PADDING:
        return append(position, n, 0, 0, 5);
    case SIDE_START:
        return append(position, n, 0, length < 128 ? length : 128, 0);
    case SIDE_TAIL:
        return append(position, n, length < 128 ? 0 : length - 128, length, 0);
    case SIDE_HOLES:
        return append_holes(position, n, length);
    }
    return n;
}

static int32_t *room(size_t n)
{
    int32_t *rows = calloc(n + 1, sizeof(int32_t));

    assert_non_null(rows);
    return rows;
}

static void init_rows(struct attention_case *c, const struct attention_rows *rows)
{
    size_t most = 0; /* rows of one side: padding is at most 8 of a sequence */

    for (uint32_t i = 0; i < c->n_sequences; i++) {
        most += rows[i].length + 8;
    }
    c->q_cu_rows = room(c->n_sequences);
    c->k_cu_rows = room(c->n_sequences);
    c->q_position = room(most);
    c->k_position = room(most);
    for (uint32_t i = 0; i < c->n_sequences; i++) {
        size_t q = append_side(c->q_position, c->n_q, rows[i].length, rows[i].q) - c->n_q;
        size_t k = append_side(c->k_position, c->n_k, rows[i].length, rows[i].k) - c->n_k;

        c->n_q += q;
        c->n_k += k;
        assert_true(c->n_q <= most && c->n_k <= most);
        c->q_cu_rows[i + 1] = (int32_t)c->n_q;
        c->k_cu_rows[i + 1] = (int32_t)c->n_k;
        c->max_q_rows = q > c->max_q_rows ? (uint32_t)q : c->max_q_rows;
        c->max_k_rows = k > c->max_k_rows ? (uint32_t)k : c->max_k_rows;
    }
}

/* Random rows of `width` in (-most, most), NaN where there is no token. */
static float *random_rows(uint64_t *state, const int32_t *position, size_t n, size_t width,
                          float most)
{
    float *values = kernel_random(state, n * width);

    for (size_t i = 0; i < n * width; i++) {
        values[i] = truncf(values[i] * 128.0F) / 128.0F * most;
        values[i] = position[i / width] < 0 ? __builtin_nanf("") : values[i];
    }
    return values;
}

static bool sees(const struct attention_shape *shape, int32_t q, int32_t k)
{
    if (q < 0 || k < 0) {
        return false;
    }
    if (shape->causal && k > q) {
        return false;
    }
    return shape->window == 0 || abs(q - k) < (int)shape->window;
}

/* One query of one head: scores and probabilities of its sequence's keys, [k_cu_rows .. ]. */
struct naive_query {
    size_t row, head, kv_head, first_key, end_key;
    double lse;
    double *probability;
};

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static double scale_of(const struct attention_case *c)
{
    return (double)(float)(1.0 / sqrt((double)c->shape.head_dim));
}

static void naive_query(const struct attention_doubles *d, size_t i, struct naive_query *query)
{
    const struct attention_case *c = d->c;
    size_t dim = c->shape.head_dim;
    const double *q = d->q + (query->row * c->shape.heads + query->head) * dim;
    double max = -HUGE_VAL, total = 0;

    query->kv_head = query->head / (c->shape.heads / c->shape.kv_heads);
    query->first_key = (size_t)c->k_cu_rows[i];
    query->end_key = (size_t)c->k_cu_rows[i + 1];
    for (size_t key = query->first_key; key < query->end_key; key++) {
        const double *k = d->k + (key * c->shape.kv_heads + query->kv_head) * dim;
        double score = sees(&c->shape, c->q_position[query->row], c->k_position[key])
                           ? dot(q, k, dim) * scale_of(c)
                           : -HUGE_VAL;

        query->probability[key - query->first_key] = score;
        max = score > max ? score : max;
    }
    for (size_t j = 0; j < query->end_key - query->first_key; j++) {
        double score = query->probability[j];

        query->probability[j] = isinf(score) ? 0.0 : exp(score - max);
        total += query->probability[j];
    }
    for (size_t j = 0; j < query->end_key - query->first_key; j++) {
        query->probability[j] = total > 0 ? query->probability[j] / total : 0.0;
    }
    query->lse = total > 0 ? max + log(total) : -HUGE_VAL;
}

static void for_queries(const struct attention_doubles *d,
                        void (*visit)(const struct attention_doubles *, struct naive_query *,
                                      void *),
                        void *arg)
{
    struct naive_query query = {.probability = kernel_zeros_double(d->c->max_k_rows)};

    for (size_t i = 0; i < d->c->n_sequences; i++) {
        for (int32_t row = d->c->q_cu_rows[i]; row < d->c->q_cu_rows[i + 1]; row++) {
            for (size_t head = 0; head < d->c->shape.heads; head++) {
                query.row = (size_t)row;
                query.head = head;
                naive_query(d, i, &query);
                visit(d, &query, arg);
            }
        }
    }
    free(query.probability);
}

static void visit_forward(const struct attention_doubles *d, struct naive_query *query, void *arg)
{
    const struct attention_case *c = d->c;
    size_t dim = c->shape.head_dim, at = query->row * c->shape.heads + query->head;
    double *out = d->out + at * dim;

    (void)arg;
    memset(out, 0, dim * sizeof(double));
    for (size_t key = query->first_key; key < query->end_key; key++) {
        double probability = query->probability[key - query->first_key];
        const double *v = d->v + (key * c->shape.kv_heads + query->kv_head) * dim;

        for (size_t e = 0; e < dim && probability > 0; e++) {
            out[e] += probability * v[e];
        }
    }
    d->lse[at] = query->lse;
}

void attention_naive_forward(const struct attention_doubles *d)
{
    for_queries(d, visit_forward, NULL);
}

static void visit_backward(const struct attention_doubles *d, struct naive_query *query, void *arg)
{
    struct attention_case *c = arg;
    size_t dim = c->shape.head_dim, at = query->row * c->shape.heads + query->head;
    double dout[512], delta;

    for (size_t e = 0; e < dim; e++) {
        dout[e] = (double)c->dout[at * dim + e];
    }
    delta = dot(dout, d->out + at * dim, dim) - (double)c->dlse[at];
    for (size_t key = query->first_key; key < query->end_key; key++) {
        double probability = query->probability[key - query->first_key];
        size_t k_at = (key * c->shape.kv_heads + query->kv_head) * dim;
        double dscore = probability * (dot(dout, d->v + k_at, dim) - delta) * scale_of(c);

        for (size_t e = 0; e < dim && probability > 0; e++) {
            c->true_dq[at * dim + e] += dscore * d->k[k_at + e];
            c->true_dk[k_at + e] += dscore * d->q[at * dim + e];
            c->true_dv[k_at + e] += probability * dout[e];
        }
    }
}

static void answer(struct attention_case *c, size_t q_size, size_t k_size, bool has_gradients)
{
    struct attention_doubles d = {.c = c,
                                  .q = kernel_double(c->q, q_size),
                                  .k = kernel_double(c->k, k_size),
                                  .v = kernel_double(c->v, k_size)};

    d.out = c->true_out = kernel_zeros_double(q_size);
    d.lse = c->true_lse = kernel_zeros_double(c->n_q * c->shape.heads);
    attention_naive_forward(&d);
    if (has_gradients) {
        c->true_dq = kernel_zeros_double(q_size);
        c->true_dk = kernel_zeros_double(k_size);
        c->true_dv = kernel_zeros_double(k_size);
        for_queries(&d, visit_backward, c);
    }
    free(d.q);
    free(d.k);
    free(d.v);
}

static void init(struct attention_case *c, const struct attention_shape *shape,
                 const struct attention_rows *rows, uint32_t n_sequences, uint64_t seed)
{
    size_t q_width = (size_t)shape->heads * shape->head_dim;
    size_t k_width = (size_t)shape->kv_heads * shape->head_dim;

    memset(c, 0, sizeof(*c));
    c->shape = *shape;
    c->n_sequences = n_sequences;
    init_rows(c, rows);
    c->q = random_rows(&seed, c->q_position, c->n_q, q_width, 4);
    c->k = random_rows(&seed, c->k_position, c->n_k, k_width, 1);
    c->v = random_rows(&seed, c->k_position, c->n_k, k_width, 1);
    c->dout = random_rows(&seed, c->q_position, c->n_q, q_width, 1);
    c->dlse = kernel_random(&seed, c->n_q * shape->heads);
    c->out = kernel_random(&seed, c->n_q * q_width);
    c->lse = kernel_random(&seed, c->n_q * shape->heads);
    c->dq = kernel_zeros(c->n_q * q_width);
    c->dk = kernel_zeros(c->n_k * k_width);
    c->dv = kernel_zeros(c->n_k * k_width);
}

void attention_case_init(struct attention_case *c, const struct attention_shape *shape,
                         const struct attention_rows *rows, uint32_t n_sequences, uint64_t seed)
{
    init(c, shape, rows, n_sequences, seed);
    answer(c, c->n_q * shape->heads * shape->head_dim, c->n_k * shape->kv_heads * shape->head_dim,
           true);
}

void attention_case_init_forward(struct attention_case *c, const struct attention_shape *shape,
                                 const struct attention_rows *rows, uint32_t n_sequences,
                                 uint64_t seed)
{
    init(c, shape, rows, n_sequences, seed);
    answer(c, c->n_q * shape->heads * shape->head_dim, c->n_k * shape->kv_heads * shape->head_dim,
           false);
}

void attention_case_forget_dlse(struct attention_case *c)
{
    memset(c->dlse, 0, c->n_q * c->shape.heads * sizeof(float));
    free(c->true_out);
    free(c->true_lse);
    free(c->true_dq);
    free(c->true_dk);
    free(c->true_dv);
    answer(c, c->n_q * c->shape.heads * c->shape.head_dim,
           c->n_k * c->shape.kv_heads * c->shape.head_dim, true);
}

void attention_case_deinit(struct attention_case *c)
{
    void *const owned[] = {c->q_cu_rows, c->k_cu_rows, c->q_position, c->k_position, c->q,
                           c->k,         c->v,         c->dout,       c->dlse,       c->out,
                           c->lse,       c->dq,        c->dk,         c->dv,         c->true_out,
                           c->true_lse,  c->true_dq,   c->true_dk,    c->true_dv};

    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++) {
        free(owned[i]);
    }
}

struct skrull_attention attention_case_forward(const struct attention_case *c)
{
    return (struct skrull_attention){.dtype = SKRULL_DTYPE_F32,
                                     .n_sequences = c->n_sequences,
                                     .q_cu_rows = c->q_cu_rows,
                                     .k_cu_rows = c->k_cu_rows,
                                     .q_position = c->q_position,
                                     .k_position = c->k_position,
                                     .max_q_rows = c->max_q_rows,
                                     .max_k_rows = c->max_k_rows,
                                     .heads = c->shape.heads,
                                     .kv_heads = c->shape.kv_heads,
                                     .head_dim = c->shape.head_dim,
                                     .scale = (float)scale_of(c),
                                     .causal = c->shape.causal,
                                     .window = c->shape.window,
                                     .q = c->q,
                                     .k = c->k,
                                     .v = c->v,
                                     .out = c->out,
                                     .lse = c->lse};
}

struct skrull_attention_backward attention_case_backward(const struct attention_case *c)
{
    return (struct skrull_attention_backward){.forward = attention_case_forward(c),
                                              .dout = c->dout,
                                              .dlse = c->dlse,
                                              .dq = c->dq,
                                              .dk = c->dk,
                                              .dv = c->dv};
}

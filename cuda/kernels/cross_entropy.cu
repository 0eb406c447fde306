/*
 * Head and loss, a chunk of the vocabulary at a time: a product, then a block of 256 threads a row.
 * Forward joins each chunk's log-sum-exp to that of the row so far (online softmax, arXiv
 * 1805.02867), in float; one block adds the rows' losses up in double, in one order. Backward
 * computes a chunk's logits again and makes them, in place, the gradients
 *     dlogits = loss_weight (e^(logit - lse) - is_target)
 * of the dtype, which two more products take: din += dlogits head;  dhead += dlogits^T in. din is
 * summed over chunks in din_sum where there is one. Targets are not checked here, where nobody
 * waits for the device: one beyond the vocabulary makes the loss NaN.
 */
#include <math.h>

#include "blas.h"
#include "entry.h"
#include "reduce.h"

extern "C" int SK_ENTRY(cast)(const struct skrull_cast *params, void *stream,
                              struct skrull_error *err);

namespace
{
using namespace sk;

/* Columns [first, first + n) of the vocabulary. */
struct chunk {
    uint32_t first, n;
    bool is_last;
};

__device__ __forceinline__ bool has_weight(float weight)
{
    return weight > 0.0F || weight < 0.0F;
}

/* The chunk's own sum of exponentials, as its largest logit and the sum of e^(logit - largest). */
struct exponentials {
    float most, sum;
};

template <int N>
__device__ __forceinline__ exponentials sum_exponentials(const float *logits, uint32_t n,
                                                         warp_values<float> &shared)
{
    float most = -INFINITY, sum = 0.0F;

    each_of_row<N>(n, [=, &most, &sum](auto many, size_t i) {
        constexpr int n_here = decltype(many)::value;
        float x[n_here], largest = most;

        load<n_here>(logits + i, x);
        SK_UNROLL
        for (int j = 0; j < n_here; j++) {
            largest = fmaxf(largest, x[j]);
        }
        sum *= most < largest ? expf(most - largest) : 1.0F;
        most = largest;
        SK_UNROLL
        for (int j = 0; j < n_here; j++) {
            sum += expf(x[j] - most);
        }
    });
    const float of_row = join_row<larger>(most, shared);

    /* A thread without columns has the sum 0 and no maximum. */
    sum = join_row<plus>(isinf(most) ? sum : sum * expf(most - of_row), shared);
    return exponentials{of_row, sum};
}

template <int N> __global__ void grow_lse_kernel(struct skrull_cross_entropy p, struct chunk chunk)
{
    SK_SMEM(warp_values<float>, shared);

    for (size_t row = blockIdx.x; row < p.n_rows; row += gridDim.x) {
        const exponentials e = sum_exponentials<N>(p.logits + row * p.chunk, chunk.n, shared);

        if (threadIdx.x == 0) {
            const float here = e.most + logf(e.sum);
            const float before = chunk.first == 0 ? -INFINITY : p.lse[row];
            const float most = before > here ? before : here;
            const float less = before > here ? here : before;

            p.lse[row] = most + log1pf(expf(less - most));
        }
    }
}

constexpr unsigned LOSS_THREADS = 1024;

/* One block: the loss less the weighted logits of the targets in the chunk; with the last chunk,
 * plus the weighted lse. */
__global__ void add_loss_kernel(struct skrull_cross_entropy p, struct chunk chunk)
{
    SK_SMEM(warp_values<double>, shared);
    double sum = 0.0;

    for (size_t row = threadIdx.x; row < p.n_rows; row += blockDim.x) {
        const double weight = (double)p.loss_weight[row];
        const int32_t target = p.target[row];

        if (!has_weight(p.loss_weight[row])) {
            continue;
        }
        if (target < 0 || (uint32_t)target >= p.vocabulary) {
            sum = (double)NAN;
        } else if ((uint32_t)target >= chunk.first && (uint32_t)target - chunk.first < chunk.n) {
            sum -= weight * (double)p.logits[row * p.chunk + ((uint32_t)target - chunk.first)];
        }
        if (chunk.is_last) {
            sum += weight * (double)p.lse[row];
        }
    }
    sum = join_row<plus>(sum, shared);
    if (threadIdx.x == 0) {
        *p.loss += sum;
    }
}

/*
 * Logits of a row become their gradients, of T at the beginning of the row. Tile by tile: what a
 * tile's gradients overwrite was read with it or before, and a barrier stands between.
 */
template <class T, int N>
__global__ void differentiate_kernel(struct skrull_cross_entropy p, struct chunk chunk)
{
    const size_t tile = blockDim.x * (size_t)N;

    for (size_t row = blockIdx.x; row < p.n_rows; row += gridDim.x) {
        const float *logits = p.logits + row * p.chunk;
        const float weight = p.loss_weight[row], lse = p.lse[row];
        const bool counts = has_weight(weight);
        const int64_t target = (int64_t)p.target[row] - chunk.first;
        T *gradients = reinterpret_cast<T *>(p.logits + row * p.chunk);

        for (size_t begin = 0; begin < chunk.n; begin += tile) {
            const size_t i = begin + threadIdx.x * (size_t)N;
            const bool is_mine = i < chunk.n;
            float x[N];

            if (is_mine) {
                load<N>(logits + i, x);
                SK_UNROLL
                for (int j = 0; j < N; j++) {
                    x[j] = counts ? weight * expf(x[j] - lse) : 0.0F;
                    x[j] -= counts && target == (int64_t)i + j ? weight : 0.0F;
                }
            }
            __syncthreads();
            if (is_mine) {
                store<N>(gradients + i, x);
            }
        }
        __syncthreads();
    }
}

dim3 a_block_a_row(const struct skrull_cross_entropy *p)
{
    return grid_of(p->n_rows);
}

/* Chunks' widths leave no rest behind the last vector. */
bool has_vectors(const struct skrull_cross_entropy *p, const struct chunk *chunk)
{
    return chunk->n % VECTOR == 0 && is_aligned<float>(p->logits, p->chunk);
}

/* What the products of a chunk have in common; head is that of the chunk's columns. */
const void *head_of(const struct skrull_cross_entropy *p, const struct chunk *chunk)
{
    const size_t size = p->dtype == SKRULL_DTYPE_F32 ? sizeof(float) : sizeof(bf16);

    return static_cast<const char *>(p->head) + (size_t)chunk->first * p->width * size;
}

int compute_logits(const struct skrull_cross_entropy *p, const struct chunk *chunk, void *stream,
                   struct skrull_error *err)
{
    struct blas_gemm product = {};

    product.dtype = p->dtype;
    product.c_dtype = SKRULL_DTYPE_F32;
    product.m = p->n_rows;
    product.n = chunk->n;
    product.k = p->width;
    product.a = p->in;
    product.b = head_of(p, chunk);
    product.c = p->logits;
    product.a_stride = product.b_stride = p->width;
    product.c_stride = p->chunk;
    product.b_transposed = true;
    return SK_ENTRY(blas_gemm)(&product, stream, err);
}

int grow_loss(const struct skrull_cross_entropy *p, const struct chunk *chunk, void *stream,
              struct skrull_error *err)
{
    const int rc = with_vectors(has_vectors(p, chunk), [&](auto n) {
        return launch(grow_lse_kernel<decltype(n)::value>, a_block_a_row(p), dim3(BLOCK),
                      sizeof(warp_values<float>), stream, err, *p, *chunk);
    });

    return rc < 0 ? rc
                  : launch(add_loss_kernel, dim3(1), dim3(LOSS_THREADS),
                           sizeof(warp_values<double>), stream, err, *p, *chunk);
}

int differentiate_logits(const struct skrull_cross_entropy *p, const struct chunk *chunk,
                         void *stream, struct skrull_error *err)
{
    return with_dtype("cross_entropy", p->dtype, err, [&](auto type) {
        return with_vectors(has_vectors(p, chunk), [&](auto n) {
            return launch(differentiate_kernel<decltype(type), decltype(n)::value>,
                          a_block_a_row(p), dim3(BLOCK), 0, stream, err, *p, *chunk);
        });
    });
}

int add_gradients(const struct skrull_cross_entropy_backward *backward, const struct chunk *chunk,
                  void *stream, struct skrull_error *err)
{
    const struct skrull_cross_entropy *p = &backward->forward;
    struct blas_gemm product = {};
    int rc;

    product.dtype = p->dtype;
    product.c_dtype = backward->din_sum ? SKRULL_DTYPE_F32 : p->dtype;
    product.m = p->n_rows;
    product.n = p->width;
    product.k = chunk->n;
    product.a = p->logits;
    product.b = head_of(p, chunk);
    product.c = backward->din_sum ? backward->din_sum : backward->din;
    product.a_stride = (size_t)p->chunk * (p->dtype == SKRULL_DTYPE_F32 ? 1 : 2);
    product.b_stride = product.c_stride = p->width;
    product.add = chunk->first > 0;
    rc = SK_ENTRY(blas_gemm)(&product, stream, err);
    if (rc < 0) {
        return rc;
    }
    product.c_dtype = SKRULL_DTYPE_F32;
    product.m = chunk->n;
    product.k = p->n_rows;
    product.a_transposed = true;
    product.b = p->in;
    product.c = backward->dhead + (size_t)chunk->first * p->width;
    product.add = true;
    return SK_ENTRY(blas_gemm)(&product, stream, err);
}

/* The sum of all chunks, rounded once. */
int write_din(const struct skrull_cross_entropy_backward *p, void *stream, struct skrull_error *err)
{
    struct skrull_cast cast = {};

    cast.n = p->din_sum ? (size_t)p->forward.n_rows * p->forward.width : 0;
    cast.in_dtype = SKRULL_DTYPE_F32;
    cast.out_dtype = p->forward.dtype;
    cast.in = p->din_sum;
    cast.out = p->din;
    return SK_ENTRY(cast)(&cast, stream, err);
}

/* work(chunk) for each of the vocabulary, until one fails. */
template <class F>
int each_chunk(const struct skrull_cross_entropy *p, struct skrull_error *err, F work)
{
    int rc = 0;

    if (p->chunk == 0 || p->vocabulary == 0 || p->width == 0) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "cross-entropy: chunks of %u of a vocabulary of %u, width %u",
                                p->chunk, p->vocabulary, p->width);
    }
    for (uint64_t first = 0; rc == 0 && p->n_rows > 0 && first < p->vocabulary; first += p->chunk) {
        const uint64_t left = p->vocabulary - first, n = left < p->chunk ? left : p->chunk;
        const struct chunk chunk = {(uint32_t)first, (uint32_t)n, n == left};

        rc = work(&chunk);
    }
    return rc;
}
} // namespace

extern "C" int SK_ENTRY(cross_entropy_forward)(const struct skrull_cross_entropy *p, void *stream,
                                               struct skrull_error *err)
{
    return each_chunk(p, err, [&](const struct chunk *chunk) {
        const int rc = compute_logits(p, chunk, stream, err);

        return rc < 0 ? rc : grow_loss(p, chunk, stream, err);
    });
}

extern "C" int SK_ENTRY(cross_entropy_backward)(const struct skrull_cross_entropy_backward *p,
                                                void *stream, struct skrull_error *err)
{
    const int rc = each_chunk(&p->forward, err, [&](const struct chunk *chunk) {
        int failed = compute_logits(&p->forward, chunk, stream, err);

        if (failed == 0) {
            failed = differentiate_logits(&p->forward, chunk, stream, err);
        }
        return failed < 0 ? failed : add_gradients(p, chunk, stream, err);
    });

    return rc < 0 ? rc : write_din(p, stream, err);
}

/* Small kernels for tests in C. */
#include "dev.h"

#include "shim/probes.h"

namespace
{
using namespace sk;

template <class T, int N> __global__ void mma_kernel(struct probe_mma *p)
{
    float c[N][4];
    uint32_t a[4], b[2 * N];

    for (int i = 0; i < 4; i++) {
        a[i] = p->a[lane_id()][i];
    }
    for (int i = 0; i < 2 * N; i++) {
        b[i] = p->b[lane_id()][i];
    }
    for (int n = 0; n < N; n++) {
        for (int i = 0; i < 4; i++) {
            c[n][i] = p->c[lane_id()][n][i];
        }
    }
    if (N == 1) {
        mma<T>(c[0], a, b[0], b[1]);
    } else {
        mma_row<T, N>(c, a, b);
    }
    for (int n = 0; n < N; n++) {
        for (int i = 0; i < 4; i++) {
            p->c[lane_id()][n][i] = c[n][i];
        }
    }
}

template <class T> int launch_mma(struct probe_mma *p)
{
    void (*const kernel)(struct probe_mma *) = p->n_tiles == 1    ? mma_kernel<T, 1>
                                               : p->n_tiles == 3  ? mma_kernel<T, 3>
                                               : p->n_tiles == 8  ? mma_kernel<T, 8>
                                               : p->n_tiles == 16 ? mma_kernel<T, 16>
                                                                  : mma_kernel<T, 31>;

    return launch(kernel, dim3(1), dim3(32), 0, nullptr, nullptr, p);
}

struct rows {
    unsigned char bytes[256 * PROBE_LANES];
};

__global__ void ldmatrix_kernel(struct probe_ldmatrix *p)
{
    SK_SMEM(rows, sm);
    unsigned char *row = sm.bytes + lane_id() * p->stride;

    memcpy(row, p->rows[lane_id()], 16);
    __syncwarp();
    if (p->is_transposed) {
        ldm4t(p->r[lane_id()], row);
    } else {
        ldm4(p->r[lane_id()], row);
    }
}

__global__ void indices_kernel(uint32_t (*out)[6])
{
    const uint32_t block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const uint32_t thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    uint32_t *mine = out[block * (blockDim.x * blockDim.y * blockDim.z) + thread];

    mine[0] = blockIdx.x;
    mine[1] = blockIdx.y;
    mine[2] = blockIdx.z;
    mine[3] = threadIdx.x;
    mine[4] = threadIdx.y;
    mine[5] = threadIdx.z;
}

__global__ void empty_kernel()
{
}

__global__ void warp_kernel(struct probe_warp *p)
{
    const int lane = lane_id();
    const uint32_t x = p->in[lane];

    p->up[lane] = shfl_up(x, 2);
    p->down[lane] = shfl_down(x, 5);
    p->from_3[lane] = shfl(x, 3);
    p->ballot[lane] = __ballot_sync(~0u, x & 1);
    p->any[lane] = __any_sync(~0u, x == p->in[31]);
    p->all[lane] = __all_sync(~0u, x != p->in[31]);
    p->sum[lane] = warp_sum((double)x + 0.5);
    p->most[lane] = warp_max(-(float)x);
}

template <class T> __global__ void copy_kernel(const T *from, T *to)
{
    float eight[8], four[4], two[2], one[1];

    load<8>(from, eight);
    load<4>(from + 8, four);
    load<2>(from + 12, two);
    load<1>(from + 14, one);
    store<8>(to, eight);
    store<4>(to + 8, four);
    store<2>(to + 12, two);
    store<1>(to + 14, one);
}

template <class T> int launch_copy(const void *from, void *to)
{
    return launch(copy_kernel<T>, dim3(1), dim3(1), 0, nullptr, nullptr,
                  static_cast<const T *>(from), static_cast<T *>(to));
}

dim3 size_of(const uint32_t size[3])
{
    return dim3(size[0], size[1], size[2]);
}
} // namespace

int probe_mma(struct probe_mma *p)
{
    return p->dtype == SKRULL_DTYPE_BF16 ? launch_mma<bf16>(p) : launch_mma<fp16>(p);
}

int probe_ldmatrix(struct probe_ldmatrix *p)
{
    return launch(ldmatrix_kernel, dim3(1), dim3(32), sizeof(rows), nullptr, nullptr, p);
}

uint16_t probe_encode(enum skrull_dtype dtype, float value)
{
    return dtype == SKRULL_DTYPE_BF16 ? to<bf16>(value).bits : to<fp16>(value).bits;
}

float probe_decode(enum skrull_dtype dtype, uint16_t bits)
{
    return dtype == SKRULL_DTYPE_BF16 ? f32(bf16{bits}) : f32(fp16{bits});
}

int probe_indices(const uint32_t grid[3], const uint32_t block[3], uint32_t (*out)[6])
{
    return launch(indices_kernel, size_of(grid), size_of(block), 0, nullptr, nullptr, out);
}

int probe_launch(const uint32_t grid[3], const uint32_t block[3], size_t smem_bytes,
                 struct skrull_error *err)
{
    return launch(empty_kernel, size_of(grid), size_of(block), smem_bytes, nullptr, err);
}

int probe_warp(struct probe_warp *p)
{
    return launch(warp_kernel, dim3(1), dim3(32), 0, nullptr, nullptr, p);
}

int probe_copy(enum skrull_dtype dtype, const void *from, void *to)
{
    return dtype == SKRULL_DTYPE_F32    ? launch_copy<float>(from, to)
           : dtype == SKRULL_DTYPE_BF16 ? launch_copy<bf16>(from, to)
                                        : launch_copy<fp16>(from, to);
}

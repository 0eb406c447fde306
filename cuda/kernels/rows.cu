/*
 * Moves rows by a map: [n_rows][width] of 2 or 4 bytes, whatever their format. A row has up to 256
 * threads, a power of two, 16 bytes a thread where rows are aligned to it, else single numbers.
 * Rows of unpack differ, so nothing is written twice. Exact.
 */
#include "entry.h"

namespace
{
using namespace sk;

/* Bits of a number; VECTOR numbers of 2 bytes, or of 4 bytes in two pieces. */
template <class T, int N> struct alignas(N == 1 ? sizeof(T) : 16) bits {
    T of[N];
};

template <class T, int N> __global__ void pack_rows_kernel(struct skrull_rows p)
{
    const T *in = static_cast<const T *>(p.in);
    T *out = static_cast<T *>(p.out);

    for (size_t i = first_row(); i < p.n_rows; i += row_step()) {
        const int32_t row = p.row[i];
        const T *from = in + (row < 0 ? 0 : (size_t)row) * p.in_stride;
        T *into = out + i * p.out_stride;

        each_of_row<N>(p.width, [=](auto many, size_t at) {
            using part = bits<T, decltype(many)::value>;

            *reinterpret_cast<part *>(into + at) =
                row < 0 ? part() : *reinterpret_cast<const part *>(from + at);
        });
    }
}

template <class T, int N> __global__ void unpack_rows_kernel(struct skrull_rows p)
{
    const T *in = static_cast<const T *>(p.in);
    T *out = static_cast<T *>(p.out);

    for (size_t i = first_row(); i < p.n_rows; i += row_step()) {
        const int32_t row = p.row[i];
        const T *from = in + i * p.in_stride;
        T *into = out + (size_t)row * p.out_stride;

        if (row < 0) {
            continue;
        }
        each_of_row<N>(p.width, [=](auto many, size_t at) {
            using part = bits<T, decltype(many)::value>;

            *reinterpret_cast<part *>(into + at) = *reinterpret_cast<const part *>(from + at);
        });
    }
}

template <class T, class Launch> int move_typed(const struct skrull_rows *p, Launch launch_it)
{
    struct skrull_rows rows = *p;

    rows.in_stride = stride_or(p->in_stride, p->width);
    rows.out_stride = stride_or(p->out_stride, p->width);
    return with_vectors(
        is_aligned<T>(p->in, rows.in_stride) && is_aligned<T>(p->out, rows.out_stride),
        [&](auto n) {
            const size_t parts = p->width / (size_t) decltype(n)::value;

            return launch_it(n, row_shape_of(p->width == 0 ? 0 : p->n_rows, parts), rows);
        });
}

/* launch_it(a number of 2 or 4 bytes, count, shape, parameters with strides). */
template <class Launch>
int move_rows(const char *name, const struct skrull_rows *p, struct skrull_error *err,
              Launch launch_it)
{
    return with_dtype(name, p->dtype, err, [&](auto type) {
        using T = std::conditional_t<sizeof(type) == 2, uint16_t, uint32_t>;

        return move_typed<T>(p, [&](auto n, row_shape shape, const struct skrull_rows &rows) {
            return launch_it(T(), n, shape, rows);
        });
    });
}
} // namespace

extern "C" int SK_ENTRY(pack_rows)(const struct skrull_rows *p, void *stream,
                                   struct skrull_error *err)
{
    return move_rows("pack_rows", p, err, [&](auto bits, auto n, row_shape shape, auto &rows) {
        return launch(pack_rows_kernel<decltype(bits), decltype(n)::value>, shape.grid, shape.block,
                      0, stream, err, rows);
    });
}

extern "C" int SK_ENTRY(unpack_rows)(const struct skrull_rows *p, void *stream,
                                     struct skrull_error *err)
{
    return move_rows("unpack_rows", p, err, [&](auto bits, auto n, row_shape shape, auto &rows) {
        return launch(unpack_rows_kernel<decltype(bits), decltype(n)::value>, shape.grid,
                      shape.block, 0, stream, err, rows);
    });
}

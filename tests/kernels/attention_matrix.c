/* Shapes of attention: one answer in double for both dtypes. */
#include "kernels/attention_matrix.h"

#include "kernels/attention_device.h"

static const struct attention_rows mixed[] = {
    {1, SIDE_WHOLE, SIDE_WHOLE},    {70, SIDE_WHOLE, SIDE_WHOLE},  {100, SIDE_BEGIN, SIDE_END},
    {100, SIDE_END, SIDE_BEGIN},    {90, SIDE_FIRST, SIDE_SECOND}, {90, SIDE_SECOND, SIDE_FIRST},
    {61, SIDE_SECOND, SIDE_SECOND}, {40, SIDE_NONE, SIDE_WHOLE},   {40, SIDE_WHOLE, SIDE_NONE},
    {9, SIDE_PADDING, SIDE_WHOLE},  {9, SIDE_WHOLE, SIDE_PADDING}, {3, SIDE_FIRST, SIDE_WHOLE},
    {1, SIDE_FIRST, SIDE_SECOND},   {157, SIDE_HOLES, SIDE_HOLES}, {150, SIDE_TAIL, SIDE_START},
};
#define N_MIXED ((uint32_t)(sizeof(mixed) / sizeof(mixed[0])))

static const struct {
    bool causal;
    uint32_t window;
} masks[] = {{true, 0}, {false, 0}, {true, 17}, {false, 9}, {true, 1}};

/* Both dtypes, the first in every order of threads; big ones in one, as all under sanitizers. */
static void hold(const struct attention_shape *shape, const struct attention_rows *rows,
                 uint32_t n_sequences, bool is_backward, size_t number)
{
    const bool is_big = kernel_is_quick() || (n_sequences > 0 && rows[0].length > 1024);
    struct attention_run run = {.is_backward = is_backward,
                                .order = (int)(number % 3),
                                .gap = number % 3 * 8,
                                .has_dlse = number % 4 != 3};
    struct attention_case c;

    if (is_backward) {
        attention_case_init(&c, shape, rows, n_sequences, number);
    } else {
        attention_case_init_forward(&c, shape, rows, n_sequences, number);
    }
    if (is_backward && !run.has_dlse) {
        attention_case_forget_dlse(&c);
    }
    KERNEL_FOR_DEVICES(device)
    {
        for (size_t i = 0; i < 2; i++) {
            run.dtype = (i + number) % 2 ? SKRULL_DTYPE_BF16 : SKRULL_DTYPE_F16;
            run.is_brief = is_big || i > 0;
            attention_device_hold(device, &c, &run);
        }
    }
    attention_case_deinit(&c);
}

/* Every ratio with the masks by turns, and every mask with one ratio. */
void attention_matrix_mixed(bool is_backward)
{
    static const uint32_t heads[][2] = {{1, 1}, {4, 1}, {7, 1}, {8, 1}, {6, 2}, {2, 2}, {2, 1}};
    size_t number = 0;

    for (uint32_t dim = 64; dim <= 128; dim += 32) {
        for (size_t i = kernel_is_quick() ? 5 : 0; i < (kernel_is_quick() ? 8 : 11); i++) {
            const uint32_t *ratio = heads[i < 6 ? i : 6];
            const size_t mask = i < 6 ? (i + dim / 32) % 5 : i - 6;
            struct attention_shape shape = {ratio[0], ratio[1], dim, masks[mask].causal,
                                            masks[mask].window};

            hold(&shape, mixed, N_MIXED, is_backward, number++);
        }
    }
}

void attention_matrix_tile_edges(bool is_backward)
{
    static const uint32_t sizes[] = {32, 48, 64, 96, 128, 192, 256};
    const uint32_t n_sizes = kernel_is_quick() ? 3 : 7;
    struct attention_rows rows[21];

    for (uint32_t i = 0; i < 3 * n_sizes; i++) {
        rows[i] = (struct attention_rows){sizes[i / 3] + i % 3 - 1, SIDE_WHOLE, SIDE_WHOLE};
    }
    for (uint32_t dim = 64; dim <= 128; dim += 32) {
        for (size_t m = 0; m < (kernel_is_quick() ? 1 : 3); m++) {
            struct attention_shape shape = {1, 1, dim, masks[m].causal, masks[m].window};

            hold(&shape, rows, 3 * n_sizes, is_backward, dim + m);
        }
    }
}

void attention_matrix_whole(bool is_backward)
{
    static const uint32_t lengths[] = {2048, 1025, 2047};

    for (uint32_t i = 0; i < 3 && !kernel_is_quick(); i++) {
        struct attention_rows rows = {lengths[i], SIDE_WHOLE, SIDE_WHOLE};
        struct attention_shape shape = {1, 1, 64 + 32 * i, true, i == 1 ? 500 : 0};

        hold(&shape, &rows, 1, is_backward, i);
    }
}

void attention_matrix_long(bool is_backward)
{
    static const struct attention_rows rows[] = {{16384, SIDE_TAIL, SIDE_WHOLE},
                                                 {16384, SIDE_WHOLE, SIDE_START}};

    for (uint32_t i = 0; i < 6 && !kernel_is_quick(); i++) {
        struct attention_shape shape = {1, 1, 64 + 32 * (i / 2), true, 0};

        hold(&shape, &rows[i % 2], 1, is_backward, i);
    }
}

void attention_matrix_nothing(bool is_backward)
{
    static const struct attention_rows rows[] = {
        {40, SIDE_NONE, SIDE_WHOLE}, {40, SIDE_WHOLE, SIDE_NONE}, {0, SIDE_BEGIN, SIDE_BEGIN}};

    for (uint32_t i = 0; i < 3; i++) {
        struct attention_shape shape = {2, 1, 64, true, 0};

        hold(&shape, rows, 0, is_backward, i);
        hold(&shape, &rows[i], 1, is_backward, i);
    }
}

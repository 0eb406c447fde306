/*
 * mma and ldmatrix by a second source: where the PTX ISA says that element i of lane l lies,
 * written down here as it stands there ("Matrix Fragments for mma.m16n8k16 with floating point
 * type", "ldmatrix"), one element at a time. The shim itself gathers rows of pairs.
 */
#include "kernels/device.h"

#include <math.h>

#include "shim/probes.h"
#include "shim/shim.h"

struct place {
    int row, column;
};

/* groupID = %laneid >> 2, threadID_in_group = %laneid % 4. */
static struct place place_in_a(int lane, int i)
{
    const int group = lane >> 2, thread = lane % 4;

    return (struct place){
        .row = (i < 2 || (i >= 4 && i < 6)) ? group : group + 8,
        .column = thread * 2 + (i & 1) + (i >= 4 ? 8 : 0),
    };
}

static struct place place_in_b(int lane, int i)
{
    const int group = lane >> 2, thread = lane % 4;

    return (struct place){.row = thread * 2 + (i & 1) + (i >= 2 ? 8 : 0), .column = group};
}

static struct place place_in_c(int lane, int i)
{
    const int group = lane >> 2, thread = lane % 4;

    return (struct place){.row = i < 2 ? group : group + 8, .column = thread * 2 + (i & 1)};
}

/* Small whole numbers: every product and sum is exact in any order. */
static float whole(uint64_t *seed)
{
    return (float)kernel_below(seed, 17) - 8.0F;
}

struct matrices {
    float a[16][16];
    float b[PROBE_MOST_TILES][16][8];
    float c[PROBE_MOST_TILES][16][8];
};

static void fill(struct matrices *m, uint64_t seed)
{
    for (int i = 0; i < 256; i++) {
        m->a[i / 16][i % 16] = whole(&seed);
    }
    for (int i = 0; i < PROBE_MOST_TILES * 128; i++) {
        m->b[i / 128][i / 8 % 16][i % 8] = whole(&seed);
        m->c[i / 128][i / 8 % 16][i % 8] = whole(&seed);
    }
}

static void put_half(uint32_t *registers, int i, enum skrull_dtype dtype, float value)
{
    registers[i / 2] |= (uint32_t)dtype_encode(dtype, value) << (i % 2 * 16);
}

static void spread(const struct matrices *m, struct probe_mma *probe)
{
    struct place at;

    for (int lane = 0; lane < PROBE_LANES; lane++) {
        for (int i = 0; i < 8; i++) {
            at = place_in_a(lane, i);
            put_half(probe->a[lane], i, probe->dtype, m->a[at.row][at.column]);
        }
        for (int n = 0; n < probe->n_tiles; n++) {
            for (int i = 0; i < 4; i++) {
                at = place_in_b(lane, i);
                put_half(probe->b[lane] + 2 * n, i, probe->dtype, m->b[n][at.row][at.column]);
                at = place_in_c(lane, i);
                probe->c[lane][n][i] = m->c[n][at.row][at.column];
            }
        }
    }
}

static float product(const struct matrices *m, int n, struct place at)
{
    float sum = m->c[n][at.row][at.column];

    for (int k = 0; k < 16; k++) {
        sum += m->a[at.row][k] * m->b[n][k][at.column];
    }
    return sum;
}

static void check_mma(enum skrull_dtype dtype, int n_tiles)
{
    struct matrices *m = calloc(1, sizeof(*m));
    struct probe_mma *probe = calloc(1, sizeof(*probe));

    assert_non_null(m);
    assert_non_null(probe);
    probe->dtype = dtype;
    probe->n_tiles = n_tiles;
    fill(m, (uint64_t)n_tiles);
    spread(m, probe);
    assert_int_equal(probe_mma(probe), 0);
    for (int lane = 0; lane < PROBE_LANES; lane++) {
        for (int n = 0; n < n_tiles; n++) {
            for (int i = 0; i < 4; i++) {
                const struct place at = place_in_c(lane, i);

                if (fabs((double)(probe->c[lane][n][i] - product(m, n, at))) > 0) {
                    fail_msg("%s: c[%d] of tile %d of %d in lane %d is %g, not %g",
                             dtype_name(dtype), i, n, n_tiles, lane, (double)probe->c[lane][n][i],
                             (double)product(m, n, at));
                }
            }
        }
    }
    free(m);
    free(probe);
}

static void test_mma__multiplies_by_the_isa_layout(void **state)
{
    static const int widths[] = {1, 3, 8, 16, 31};

    (void)state;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        check_mma(SKRULL_DTYPE_BF16, widths[i]);
        check_mma(SKRULL_DTYPE_F16, widths[i]);
    }
}

/* Matrix m: rows from the addresses of lanes 8 m to 8 m + 7; lane l gets row l / 4, elements 2 (l %
 * 4) and the next; transposed: of column l / 4. */
static void test_ldmatrix__spreads_rows_by_the_isa_layout(void **state)
{
    (void)state;
    for (int is_transposed = 0; is_transposed < 2; is_transposed++) {
        struct probe_ldmatrix probe = {.is_transposed = is_transposed, .stride = 16};

        for (int i = 0; i < PROBE_LANES * 8; i++) {
            probe.rows[i / 8][i % 8] = (uint16_t)(i * 7 + 1);
        }
        assert_int_equal(probe_ldmatrix(&probe), 0);
        for (int i = 0; i < PROBE_LANES * 8; i++) {
            const int lane = i / 8, matrix = i % 8 / 2, half = i % 2;
            const int line = lane / 4, place = 2 * (lane % 4) + half;
            const uint16_t should = is_transposed ? probe.rows[8 * matrix + place][line]
                                                  : probe.rows[8 * matrix + line][place];

            assert_int_equal(probe.r[lane][matrix] >> (16 * half) & 0xffff, should);
        }
    }
}

static void test_ldmatrix__counts_bank_conflicts(void **state)
{
    static const struct {
        uint32_t stride;
        uint64_t conflicts; /* of four groups of eight rows */
    } cases[] = {{16, 0}, {128, 4 * 7}, {144, 0}, {64, 4 * 6}, {32, 4 * 4}, {80, 0}, {96, 4 * 4}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct probe_ldmatrix probe = {.stride = cases[i].stride};
        struct shim_stats stats;

        shim_stats_take();
        assert_int_equal(probe_ldmatrix(&probe), 0);
        stats = shim_stats_take();
        assert_int_equal(stats.ldmatrix_rows_of_8, 4);
        assert_int_equal(stats.ldmatrix_conflicts, cases[i].conflicts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mma__multiplies_by_the_isa_layout),
        cmocka_unit_test(test_ldmatrix__spreads_rows_by_the_isa_layout),
        cmocka_unit_test(test_ldmatrix__counts_bank_conflicts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The rest of dev.h on the CPU: conversions, indices, limits of a launch, warps, wide access. */
#include "kernels/device.h"

#include <math.h>
#include <pthread.h>

#include "shim/probes.h"
#include "shim/shim.h"

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void check_encode(enum skrull_dtype dtype, float value)
{
    if (probe_encode(dtype, value) != dtype_encode(dtype, value)) {
        fail_msg("%a as %s is %04x, not %04x", (double)value, dtype_name(dtype),
                 probe_encode(dtype, value), dtype_encode(dtype, value));
    }
}

static void test_decode__every_value(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        for (int dtype = SKRULL_DTYPE_BF16; dtype <= SKRULL_DTYPE_F16; dtype++) {
            float is = probe_decode((enum skrull_dtype)dtype, (uint16_t)bits);
            float should = dtype_decode((enum skrull_dtype)dtype, (uint16_t)bits);

            assert_true(isnan(should) ? isnan(is) : memcmp(&is, &should, sizeof(is)) == 0);
        }
    }
}

/* Every value, halves between two and what lies just beside those, and random bits. */
static void test_encode__rounds_to_nearest_even(void **state)
{
    uint64_t seed = 5;

    (void)state;
    for (int i = SKRULL_DTYPE_BF16; i <= SKRULL_DTYPE_F16; i++) {
        const enum skrull_dtype dtype = (enum skrull_dtype)i;

        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            const float low = dtype_decode(dtype, (uint16_t)bits);
            const float high = dtype_decode(dtype, (uint16_t)(bits + 1));
            const float half = low + (high - low) / 2;

            check_encode(dtype, low);
            check_encode(dtype, half);
            check_encode(dtype, nextafterf(half, low));
            check_encode(dtype, nextafterf(half, high));
        }
        for (int j = 0; j < 200000; j++) {
            check_encode(dtype, float_of(kernel_below(&seed, UINT32_MAX)));
        }
    }
}

static void test_indices__of_every_thread_in_three_dimensions(void **state)
{
    static const uint32_t grid[3] = {2, 3, 2}, block[3] = {5, 4, 3};
    static uint32_t out[12 * 60][6];

    (void)state;
    for (int order = 0; order < 3; order++) {
        memset(out, 0xff, sizeof(out));
        shim_set_order(order);
        assert_int_equal(probe_indices(grid, block, out), 0);
        for (uint32_t i = 0; i < 12 * 60; i++) {
            const uint32_t b = i / 60, t = i % 60;
            const uint32_t should[6] = {b % 2, b / 2 % 3, b / 6, t % 5, t / 5 % 4, t / 20};

            assert_memory_equal(out[i], should, sizeof(should));
        }
    }
    shim_set_order(-1);
}

static void test_launch__holds_the_limits_of_devices(void **state)
{
    static const struct {
        uint32_t grid[3], block[3];
        size_t smem_bytes;
        const char *refusal; /* NULL: runs */
    } cases[] = {
        {{1, 1, 1}, {1024, 1, 1}, 0, NULL},
        {{1, 1, 1}, {32, 32, 2}, 0, "2048 threads a block"},
        {{1, 1, 1}, {1025, 1, 1}, 0, "1025 threads a block"},
        {{1, 1, 1}, {0, 1, 1}, 0, "0 threads a block"},
        {{1, 1, 1}, {1, 1, 1}, 227 * 1024, NULL},
        {{1, 1, 1}, {1, 1, 1}, 227 * 1024 + 1, "232449 bytes of shared memory"},
        {{70000, 1, 1}, {1, 1, 1}, 0, NULL},
        {{1, 65536, 1}, {1, 1, 1}, 0, "65536 x 1 blocks"},
        {{1, 1, 65536}, {1, 1, 1}, 0, "1 x 65536 blocks"},
        {{0x80000000, 1, 1}, {1, 1, 1}, 0, "2147483648 x 1"},
        {{0, 7, 1}, {32, 1, 1}, 0, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct skrull_error err = {0};
        int rc = probe_launch(cases[i].grid, cases[i].block, cases[i].smem_bytes, &err);

        assert_int_equal(rc, cases[i].refusal ? SKRULL_ERR_INVALID_ARGUMENT : 0);
        assert_non_null(strstr(err.message, cases[i].refusal ? cases[i].refusal : ""));
    }
}

static void test_launch__counts_what_ran(void **state)
{
    static const uint32_t grid[3] = {3, 1, 1}, block[3] = {64, 1, 1};
    struct shim_stats stats;

    (void)state;
    shim_stats_take();
    assert_int_equal(probe_launch(grid, block, 0, NULL), 0);
    stats = shim_stats_take();
    assert_int_equal(stats.launches, 1);
    assert_int_equal(stats.blocks, 3);
    assert_int_equal(stats.barriers, 0);
}

static void test_warp__operations(void **state)
{
    struct probe_warp probe;
    uint32_t odd = 0;
    double sum = 0;

    (void)state;
    for (uint32_t lane = 0; lane < PROBE_LANES; lane++) {
        probe.in[lane] = lane * lane + lane / 3;
        odd |= (probe.in[lane] & 1) << lane;
        sum += probe.in[lane] + 0.5;
    }
    for (int order = 0; order < 3; order++) {
        shim_set_order(order);
        assert_int_equal(probe_warp(&probe), 0);
        for (uint32_t lane = 0; lane < PROBE_LANES; lane++) {
            assert_int_equal(probe.up[lane], probe.in[lane < 2 ? lane : lane - 2]);
            assert_int_equal(probe.down[lane], probe.in[lane > 26 ? lane : lane + 5]);
            assert_int_equal(probe.from_3[lane], probe.in[3]);
            assert_int_equal(probe.ballot[lane], odd);
            assert_true(probe.any[lane] && !probe.all[lane]);
            assert_true(fabs(probe.sum[lane] - sum) < 1e-9);
            assert_true(fabsf(probe.most[lane]) < 1e-9F);
        }
    }
    shim_set_order(-1);
}

static void test_load_and_store__every_width(void **state)
{
    (void)state;
    for (int i = SKRULL_DTYPE_F32; i <= SKRULL_DTYPE_F16; i++) {
        const struct device *device = device_at(0);
        const enum skrull_dtype dtype = (enum skrull_dtype)i;
        uint64_t seed = 3;
        float *in = kernel_random(&seed, 15), *out;
        void *from, *to;

        dtype_round(dtype, in, 15);
        from = device_put_floats(device, dtype, in, 15);
        to = device_put_floats(device, dtype, NULL, 15);
        assert_int_equal(probe_copy(dtype, from, to), 0);
        out = device_get_floats(device, dtype, to, 15);
        assert_memory_equal(in, out, 15 * sizeof(*in));
        device_free(device, from);
        device_free(device, to);
        free(in);
        free(out);
    }
}

static void *launch_some(void *arg)
{
    static const uint32_t grid[3] = {2, 3, 2}, block[3] = {5, 4, 3};
    uint32_t(*out)[6] = arg;

    for (int i = 0; i < 5; i++) {
        if (probe_indices(grid, block, out)) {
            return arg;
        }
    }
    return NULL;
}

static void test_launch__from_several_threads_at_once(void **state)
{
    static uint32_t outs[3][12 * 60][6];
    pthread_t threads[3];
    void *failed;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, launch_some, outs[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
        assert_memory_equal(outs[i], outs[0], sizeof(outs[0]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode__every_value),
        cmocka_unit_test(test_encode__rounds_to_nearest_even),
        cmocka_unit_test(test_indices__of_every_thread_in_three_dimensions),
        cmocka_unit_test(test_launch__holds_the_limits_of_devices),
        cmocka_unit_test(test_launch__counts_what_ran),
        cmocka_unit_test(test_launch__from_several_threads_at_once),
        cmocka_unit_test(test_warp__operations),
        cmocka_unit_test(test_load_and_store__every_width),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

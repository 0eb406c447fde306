/* Tests of timeline.c. */
#include "timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MAX_MICRO_BATCHES 4

/* Draws one rank of these micro-batches ([n] with comp, comm, idle) as letters. */
static void draw(const int64_t (*times)[3], uint32_t n, int64_t total_ns, size_t n_cells, char *ret)
{
    static const char letters[] = "ab-.";
    struct skrull_micro_batch micro_batches[MAX_MICRO_BATCHES] = {0};
    struct skrull_rank rank = {.n_micro_batches = n};
    const struct skrull_plan plan = {.ranks = &rank, .micro_batches = micro_batches, .n_ranks = 1};
    enum timeline_cell cells[100];

    for (uint32_t i = 0; i < n; i++) {
        micro_batches[i].estimate.comp_ns = times[i][0];
        micro_batches[i].estimate.comm_ns = times[i][1];
        micro_batches[i].estimate.idle_ns = times[i][2];
    }
    timeline_fill(&plan, 0, total_ns, n_cells, cells);
    for (size_t i = 0; i < n_cells; i++) {
        ret[i] = letters[cells[i]];
    }
    ret[n_cells] = '\0';
}

static void test_timeline_fill__spans_in_order_to_scale(void **state)
{
    static const int64_t times[][3] = {{300, 100, 100}, {200, 0, 0}};
    char line[101];

    (void)state;
    draw(times, 2, 1000, 10, line);
    assert_string_equal(line, "aaa-.bb...");
    draw(times, 2, 1000, 20, line);
    assert_string_equal(line, "aaaaaa--..bbbb......");
    draw(times, 2, 700, 7, line);
    assert_string_equal(line, "aaa-.bb");
}

static void test_timeline_fill__nothing_to_do_waits(void **state)
{
    char line[101];

    (void)state;
    draw(NULL, 0, 1000, 5, line);
    assert_string_equal(line, ".....");
}

/* A plan from a file may say anything: no overflow, no cell left out. */
static void test_timeline_fill__absurd_figures(void **state)
{
    static const int64_t times[][3] = {{INT64_MAX, INT64_MAX, INT64_MAX}, {-5, INT64_MIN, 3}};
    char line[101];

    (void)state;
    draw(times, 2, INT64_MAX, 5, line);
    assert_string_equal(line, "aaaaa");
    draw(times + 1, 1, INT64_MAX, 5, line);
    assert_string_equal(line, ".....");
    draw(times, 1, 0, 5, line);
    assert_string_equal(line, "aaaaa");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timeline_fill__spans_in_order_to_scale),
        cmocka_unit_test(test_timeline_fill__nothing_to_do_waits),
        cmocka_unit_test(test_timeline_fill__absurd_figures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Who may send a request, who waits, who is refused: without calls. */
#include "rpc/intake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* As many as are received at a time, since `now_ms`. */
static struct intake_item *fill(struct intake *intake, uint64_t now_ms)
{
    struct intake_item *items = calloc(INTAKE_RECEIVING, sizeof(*items)), *refused;

    assert_non_null(items);
    for (size_t i = 0; i < INTAKE_RECEIVING; i++) {
        assert_true(intake_enter(intake, &items[i], now_ms, &refused));
        assert_null(refused);
    }
    return items;
}

static void test_intake__last_that_came_is_first(void **state)
{
    struct intake intake = {0};
    struct intake_item *items = fill(&intake, 5), others[3] = {0}, *refused;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_false(intake_enter(&intake, &others[i], 6, &refused));
        assert_null(refused);
    }
    assert_null(intake_next(&intake, 7));
    intake_leave(&intake, &items[4]);
    assert_ptr_equal(intake_next(&intake, 7), &others[2]);
    assert_null(intake_next(&intake, 7));
    intake_leave(&intake, &others[1]); /* its client has gone */
    intake_leave(&intake, &others[2]);
    assert_ptr_equal(intake_next(&intake, 8), &others[0]);
    assert_int_equal(intake.waiting.n, 0);
    assert_int_equal(intake.receiving.n, INTAKE_RECEIVING);
    intake_leave(&intake, &others[0]);
    intake_leave(&intake, &others[0]); /* twice is harmless */
    assert_int_equal(intake.receiving.n, INTAKE_RECEIVING - 1);
    free(items);
}

static void test_intake__slow_ones_make_room_where_others_wait(void **state)
{
    struct intake intake = {0};
    struct intake_item *items = fill(&intake, 1000), other = {0}, *refused;

    (void)state;
    assert_null(intake_overdue(&intake, 1000000)); /* nobody waits for them */
    assert_false(intake_enter(&intake, &other, 1500, &refused));
    assert_null(intake_overdue(&intake, 1000 + INTAKE_STALL_MS - 1));
    for (size_t i = 0; i < INTAKE_RECEIVING; i++) {
        assert_ptr_equal(intake_overdue(&intake, 1000 + INTAKE_STALL_MS), &items[i]);
        assert_int_equal(items[i].state, INTAKE_OUT);
    }
    assert_null(intake_overdue(&intake, 1000 + INTAKE_STALL_MS));
    assert_ptr_equal(intake_next(&intake, 2100), &other);
    assert_int_equal(other.since_ms, 2100);
    free(items);
}

static void test_intake__nobody_waits_for_ever(void **state)
{
    struct intake intake = {0};
    struct intake_item *items = fill(&intake, 0), others[2] = {0}, *refused;

    (void)state;
    assert_false(intake_enter(&intake, &others[0], 0, &refused));
    assert_false(intake_enter(&intake, &others[1], 1, &refused));
    assert_ptr_equal(intake_overdue(&intake, INTAKE_WAIT_MS), &others[0]);
    intake_leave(&intake, &others[1]);
    assert_null(intake_overdue(&intake, INTAKE_WAIT_MS)); /* not even the slow, now */
    free(items);
}

static void test_intake__oldest_goes_where_too_many_wait(void **state)
{
    struct intake intake = {0};
    struct intake_item *items = fill(&intake, 0), *refused, last = {0};
    struct intake_item *others = calloc(INTAKE_WAITING, sizeof(*others));

    (void)state;
    assert_non_null(others);
    for (size_t i = 0; i < INTAKE_WAITING; i++) {
        assert_false(intake_enter(&intake, &others[i], 0, &refused));
        assert_null(refused);
    }
    assert_false(intake_enter(&intake, &last, 0, &refused));
    assert_ptr_equal(refused, &others[0]);
    assert_int_equal(others[0].state, INTAKE_OUT);
    assert_int_equal(intake.waiting.n, INTAKE_WAITING);
    free(others);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intake__last_that_came_is_first),
        cmocka_unit_test(test_intake__slow_ones_make_room_where_others_wait),
        cmocka_unit_test(test_intake__nobody_waits_for_ever),
        cmocka_unit_test(test_intake__oldest_goes_where_too_many_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

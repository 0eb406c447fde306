/* Tests of stream_state.c: whole lives of a stream without a socket. */
#include "stream_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <skrull/error.h>

struct happening {
    enum stream_event event;
    enum stream_state state; /* afterwards */
    enum stream_action action;
};

static void live(const struct happening *happenings, size_t n_happenings)
{
    enum stream_state state = STREAM_IDLE;

    for (size_t i = 0; i < n_happenings; i++) {
        print_message("# %s\n", stream_state_name(state));
        assert_int_equal(stream_state_move(&state, happenings[i].event), happenings[i].action);
        assert_int_equal(state, happenings[i].state);
    }
}

#define LIVE(happenings) live(happenings, sizeof(happenings) / sizeof((happenings)[0]))

static void test_stream_state_move__a_good_life(void **state)
{
    static const struct happening life[] = {
        {STREAM_START, STREAM_OPENING, STREAM_OPEN},
        {STREAM_CONNECTED, STREAM_ACTIVE, STREAM_NOTHING},
        {STREAM_PLAN, STREAM_ACTIVE, STREAM_DELIVER},
        {STREAM_PLAN, STREAM_ACTIVE, STREAM_DELIVER},
        {STREAM_CALL_END, STREAM_DONE, STREAM_FINISH},
        {STREAM_CLOSE, STREAM_DONE, STREAM_NOTHING},
    };

    (void)state;
    LIVE(life);
}

static void test_stream_state_move__a_message_before_the_metadata(void **state)
{
    static const struct happening life[] = {
        {STREAM_START, STREAM_OPENING, STREAM_OPEN},
        {STREAM_PLAN, STREAM_ACTIVE, STREAM_DELIVER},
        {STREAM_CONNECTED, STREAM_ACTIVE, STREAM_NOTHING},
    };

    (void)state;
    LIVE(life);
}

static void test_stream_state_move__lost_twice_then_done(void **state)
{
    static const struct happening life[] = {
        {STREAM_START, STREAM_OPENING, STREAM_OPEN},
        {STREAM_CALL_LOST, STREAM_BACKOFF, STREAM_WAIT},
        {STREAM_RETRY, STREAM_OPENING, STREAM_OPEN},
        {STREAM_CONNECTED, STREAM_ACTIVE, STREAM_NOTHING},
        {STREAM_CALL_LOST, STREAM_BACKOFF, STREAM_WAIT},
        {STREAM_RETRY, STREAM_OPENING, STREAM_OPEN},
        {STREAM_PLAN, STREAM_ACTIVE, STREAM_DELIVER},
        {STREAM_CALL_END, STREAM_DONE, STREAM_FINISH},
    };

    (void)state;
    LIVE(life);
}

static void test_stream_state_move__taken_over_and_given_back(void **state)
{
    static const struct happening life[] = {
        {STREAM_START, STREAM_OPENING, STREAM_OPEN},
        {STREAM_PLAN, STREAM_ACTIVE, STREAM_DELIVER},
        {STREAM_CALL_LOST, STREAM_BACKOFF, STREAM_WAIT},
        {STREAM_TAKE_OVER, STREAM_LOCAL, STREAM_NOTHING}, /* no call is open */
        {STREAM_PLAN, STREAM_LOCAL, STREAM_DELIVER},
        {STREAM_RETURN, STREAM_OPENING, STREAM_OPEN},
        {STREAM_TAKE_OVER, STREAM_LOCAL, STREAM_CANCEL}, /* it did not answer after all */
        {STREAM_CALL_LOST, STREAM_LOCAL, STREAM_NOTHING},
        {STREAM_LOCAL_LOST, STREAM_BACKOFF, STREAM_WAIT},
        {STREAM_RETRY, STREAM_OPENING, STREAM_OPEN},
        {STREAM_PLAN, STREAM_ACTIVE, STREAM_DELIVER},
        {STREAM_CALL_END, STREAM_DONE, STREAM_FINISH},
    };

    (void)state;
    LIVE(life);
}

static void test_stream_state_move__to_the_end_without_a_daemon(void **state)
{
    static const struct happening life[] = {
        {STREAM_START, STREAM_OPENING, STREAM_OPEN},
        {STREAM_TAKE_OVER, STREAM_LOCAL, STREAM_CANCEL},
        {STREAM_PLAN, STREAM_LOCAL, STREAM_DELIVER},
        {STREAM_CALL_END, STREAM_DONE, STREAM_FINISH},
        {STREAM_CALL_LOST, STREAM_DONE, STREAM_NOTHING}, /* the cancelled call's last word */
    };

    (void)state;
    LIVE(life);
}

static void test_stream_state_move__each_way_to_fail(void **state)
{
    static const struct happening lives[][6] = {
        {{STREAM_START, STREAM_OPENING, STREAM_OPEN},
         {STREAM_CALL_REFUSED, STREAM_FAILED, STREAM_FAIL},
         {STREAM_CLOSE, STREAM_FAILED, STREAM_NOTHING}},
        {{STREAM_START, STREAM_OPENING, STREAM_OPEN},
         {STREAM_GIVE_UP, STREAM_FAILED, STREAM_FAIL},
         {STREAM_CALL_LOST, STREAM_FAILED, STREAM_NOTHING}},
        {{STREAM_START, STREAM_OPENING, STREAM_OPEN},
         {STREAM_CALL_LOST, STREAM_BACKOFF, STREAM_WAIT},
         {STREAM_GIVE_UP, STREAM_FAILED, STREAM_FAIL}},
        {{STREAM_START, STREAM_OPENING, STREAM_OPEN},
         {STREAM_PLAN, STREAM_ACTIVE, STREAM_DELIVER},
         {STREAM_CORRUPT, STREAM_FAILED, STREAM_FAIL}},
        {{STREAM_START, STREAM_OPENING, STREAM_OPEN},
         {STREAM_CALL_LOST, STREAM_BACKOFF, STREAM_WAIT},
         {STREAM_CLOSE, STREAM_FAILED, STREAM_FAIL}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++) {
        live(lives[i], 3);
    }
}

/* Every sequence of events that the table allows ends in no state but these, and moves out of none
 * of them. */
static void test_stream_state_move__done_and_failed_are_final(void **state)
{
    static const enum stream_state finals[] = {STREAM_DONE, STREAM_FAILED};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (enum stream_event event = 0; event < N_STREAM_EVENTS; event++) {
            enum stream_state at = finals[i];
            enum stream_action action = stream_state_move(&at, event);

            assert_int_equal(at, finals[i]);
            assert_true(action == STREAM_NOTHING || action == STREAM_ILLEGAL);
        }
    }
}

static void test_stream_state_move__an_illegal_event_moves_nothing(void **state)
{
    static const struct {
        enum stream_state state;
        enum stream_event event;
    } rows[] = {
        {STREAM_IDLE, STREAM_PLAN},        {STREAM_OPENING, STREAM_START},
        {STREAM_ACTIVE, STREAM_RETRY},     {STREAM_ACTIVE, STREAM_GIVE_UP},
        {STREAM_BACKOFF, STREAM_PLAN},     {STREAM_DONE, STREAM_PLAN},
        {STREAM_LOCAL, STREAM_RETRY},      {STREAM_LOCAL, STREAM_GIVE_UP},
        {STREAM_ACTIVE, STREAM_TAKE_OVER},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum stream_state at = rows[i].state;

        assert_int_equal(stream_state_move(&at, rows[i].event), STREAM_ILLEGAL);
        assert_int_equal(at, rows[i].state);
    }
}

/* close() is legal in every state. */
static void test_stream_state_move__close_from_everywhere(void **state)
{
    (void)state;
    for (enum stream_state from = 0; from < N_STREAM_STATES; from++) {
        enum stream_state at = from;

        assert_int_not_equal(stream_state_move(&at, STREAM_CLOSE), STREAM_ILLEGAL);
        assert_int_equal(at, from == STREAM_DONE ? STREAM_DONE : STREAM_FAILED);
    }
}

static void test_stream_call_outcome__table(void **state)
{
    static const struct {
        int code;
        bool is_end, is_reopen, is_complete;
        enum stream_event event;
    } rows[] = {
        {0, true, false, false, STREAM_CALL_END},
        {0, false, true, false, STREAM_CALL_LOST},  /* draining, revision */
        {0, false, false, false, STREAM_CALL_LOST}, /* OK, but nobody said why */
        {0, false, true, true, STREAM_CALL_END},    /* draining, but all is here */
        {SKRULL_ERR_UNAVAILABLE, false, false, false, STREAM_CALL_LOST},
        {SKRULL_ERR_UNAVAILABLE, false, false, true, STREAM_CALL_END},
        {SKRULL_ERR_UNAVAILABLE, true, false, false, STREAM_CALL_END},
        {SKRULL_ERR_UNKNOWN, false, false, false, STREAM_CALL_LOST},
        {SKRULL_ERR_CANCELLED, false, false, false, STREAM_CALL_LOST},
        {SKRULL_ERR_FAILED_PRECONDITION, false, false, false, STREAM_CALL_REFUSED},
        {SKRULL_ERR_NOT_FOUND, false, false, false, STREAM_CALL_REFUSED},
        {SKRULL_ERR_OUT_OF_RANGE, false, false, false, STREAM_CALL_REFUSED},
        {SKRULL_ERR_UNIMPLEMENTED, false, false, false, STREAM_CALL_REFUSED},
        {SKRULL_ERR_RESOURCE_EXHAUSTED, false, false, false, STREAM_CALL_REFUSED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_message("# row %zu\n", i);
        assert_int_equal(stream_call_outcome(rows[i].code, rows[i].is_end, rows[i].is_reopen,
                                             rows[i].is_complete),
                         rows[i].event);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_state_move__a_good_life),
        cmocka_unit_test(test_stream_state_move__a_message_before_the_metadata),
        cmocka_unit_test(test_stream_state_move__lost_twice_then_done),
        cmocka_unit_test(test_stream_state_move__taken_over_and_given_back),
        cmocka_unit_test(test_stream_state_move__to_the_end_without_a_daemon),
        cmocka_unit_test(test_stream_state_move__each_way_to_fail),
        cmocka_unit_test(test_stream_state_move__done_and_failed_are_final),
        cmocka_unit_test(test_stream_state_move__an_illegal_event_moves_nothing),
        cmocka_unit_test(test_stream_state_move__close_from_everywhere),
        cmocka_unit_test(test_stream_call_outcome__table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

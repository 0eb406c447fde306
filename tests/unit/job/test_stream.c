/* The stream's table: the paths through it, and every state against every event. */
#include "job/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct stream opened(uint64_t from, uint64_t end, uint32_t window, uint64_t given_out_below,
                            unsigned int expected)
{
    struct stream stream;

    stream_init(&stream, from, end, window, false, given_out_below);
    assert_int_equal(stream_step(&stream, STREAM_OPEN), expected);
    return stream;
}

static void test_stream_step__sends_step_after_step_and_ends(void **state)
{
    struct stream stream = opened(5, 7, 0, 64, STREAM_ASK);

    (void)state;
    assert_int_equal(stream_step(&stream, STREAM_PLANNED), STREAM_SEND);
    assert_int_equal(stream.step, 5);
    assert_int_equal(stream_step(&stream, STREAM_SENT), STREAM_ASK);
    assert_int_equal(stream.step, 6);
    assert_int_equal(stream_step(&stream, STREAM_PLANNED), STREAM_SEND);
    assert_int_equal(stream_step(&stream, STREAM_SENT), STREAM_END);
    assert_int_equal(stream.step, 7);
    assert_int_equal(stream.state, STREAM_ENDED);
}

static void test_stream_step__of_no_step_ends_at_once(void **state)
{
    (void)state;
    (void)opened(7, 7, 0, 0, STREAM_END);
}

static void test_stream_step__nothing_leaves_before_it_is_marked(void **state)
{
    struct stream stream = opened(64, 200, 0, 64, STREAM_MARK);

    (void)state;
    assert_int_equal(stream_step(&stream, STREAM_NEWS), 0); /* another rank's */
    stream.given_out_below = 128;
    assert_int_equal(stream_step(&stream, STREAM_NEWS), STREAM_ASK);
}

static void test_stream_step__checks_the_digest_first(void **state)
{
    struct stream stream;

    (void)state;
    stream_init(&stream, 5, 7, 0, true, 64);
    assert_int_equal(stream_step(&stream, STREAM_OPEN), STREAM_CHECK);
    assert_int_equal(stream_step(&stream, STREAM_NEWS), 0);
    assert_int_equal(stream_step(&stream, STREAM_CHECKED), STREAM_ASK);
    stream_init(&stream, 5, 7, 0, true, 64);
    assert_int_equal(stream_step(&stream, STREAM_OPEN), STREAM_CHECK);
    assert_int_equal(stream_step(&stream, STREAM_FAIL), STREAM_CANCEL | STREAM_ABORT);
}

/* Sends as much as it may; returns the number of steps. */
static int send_all(struct stream *stream, unsigned int actions)
{
    int n = 0;

    while (actions == STREAM_ASK) {
        assert_int_equal(stream_step(stream, STREAM_PLANNED), STREAM_SEND);
        actions = stream_step(stream, STREAM_SENT);
        n++;
    }
    return n;
}

static void test_stream_step__window_is_counted_from_the_last_report(void **state)
{
    struct stream stream = opened(10, 100, 3, 100, STREAM_ASK);

    (void)state;
    assert_int_equal(send_all(&stream, STREAM_ASK), 3);
    assert_int_equal(stream.state, STREAM_BLOCKED);
    assert_int_equal(stream.step, 13);
    assert_false(stream_report(&stream, 9)); /* before the stream began: no news */
    assert_true(stream_report(&stream, 11));
    assert_int_equal(send_all(&stream, stream_step(&stream, STREAM_NEWS)), 2);
    assert_int_equal(stream.step, 15);
    assert_false(stream_report(&stream, 11));
    assert_true(stream_report(&stream, 50)); /* a worker that is ahead of this stream */
    assert_int_equal(send_all(&stream, stream_step(&stream, STREAM_NEWS)), 51 + 3 - 15);
}

static void test_stream_step__window_at_the_largest_step(void **state)
{
    struct stream stream = opened(UINT64_MAX - 2, UINT64_MAX - 1, 4, UINT64_MAX, STREAM_ASK);

    (void)state;
    assert_int_equal(stream_step(&stream, STREAM_PLANNED), STREAM_SEND);
    assert_int_equal(stream_step(&stream, STREAM_SENT), STREAM_END);
}

static void test_stream_revise__ends_where_it_begins(void **state)
{
    struct stream stream = opened(5, 100, 0, 64, STREAM_ASK);

    (void)state;
    assert_true(stream_revise(&stream, 7));
    assert_int_equal(stream_step(&stream, STREAM_NEWS), 0); /* step 5 is in the making */
    assert_int_equal(stream_step(&stream, STREAM_PLANNED), STREAM_SEND);
    assert_int_equal(stream_step(&stream, STREAM_NEWS), 0);
    assert_int_equal(stream_step(&stream, STREAM_SENT), STREAM_ASK);
    assert_int_equal(stream_step(&stream, STREAM_PLANNED), STREAM_SEND);
    assert_int_equal(stream_step(&stream, STREAM_SENT), STREAM_END);
    assert_int_equal(stream_end_reason(&stream), STREAM_END_REVISION);
    assert_int_equal(stream.step, 7);
}

static void test_stream_revise__of_one_that_waits(void **state)
{
    struct stream stream = opened(5, 100, 3, 8, STREAM_ASK);

    (void)state;
    assert_int_equal(send_all(&stream, STREAM_ASK), 3); /* blocked before 8 */
    assert_true(stream_revise(&stream, 8));
    assert_int_equal(stream_step(&stream, STREAM_NEWS), STREAM_END);
    assert_int_equal(stream_end_reason(&stream), STREAM_END_REVISION);
    stream = opened(64, 100, 0, 64, STREAM_MARK);
    assert_true(stream_revise(&stream, 64));
    assert_int_equal(stream_step(&stream, STREAM_NEWS), STREAM_END);
    assert_int_equal(stream_end_reason(&stream), STREAM_END_REVISION);
    stream = opened(90, 100, 0, 64, STREAM_MARK); /* past it already */
    assert_true(stream_revise(&stream, 64));
    assert_int_equal(stream_step(&stream, STREAM_NEWS), STREAM_END);
    assert_int_equal(stream.step, 90);
    stream = opened(70, 100, 0, 64, STREAM_MARK); /* before it */
    assert_true(stream_revise(&stream, 80));
    assert_int_equal(stream_step(&stream, STREAM_NEWS), 0);
}

static void test_stream_revise__behind_its_end(void **state)
{
    struct stream stream = opened(5, 6, 0, 64, STREAM_ASK);

    (void)state;
    assert_false(stream_revise(&stream, 7));
    stream.is_counted = true;
    assert_false(stream_revise(&stream, 6)); /* it has what it asked for by then */
    assert_int_equal(stream_step(&stream, STREAM_PLANNED), STREAM_SEND);
    assert_int_equal(stream_step(&stream, STREAM_SENT), STREAM_END);
    assert_int_equal(stream_end_reason(&stream), STREAM_END_DONE);
    stream = opened(5, 6, 0, 64, STREAM_ASK); /* of all steps, which may be more now */
    assert_true(stream_revise(&stream, 6));
    assert_int_equal(stream_step(&stream, STREAM_DRAIN), STREAM_CANCEL | STREAM_END);
    assert_int_equal(stream_end_reason(&stream), STREAM_END_DRAINING);
}

static void test_stream_step__drain_lets_the_message_in_flight_leave(void **state)
{
    struct stream stream = opened(0, 9, 0, 64, STREAM_ASK);

    (void)state;
    assert_int_equal(stream_step(&stream, STREAM_PLANNED), STREAM_SEND);
    assert_int_equal(stream_step(&stream, STREAM_DRAIN), 0);
    assert_int_equal(stream_step(&stream, STREAM_SENT), STREAM_END);
    assert_int_equal(stream.step, 1);
    assert_true(stream.step < stream.end_step);
}

/* A stream in the state, by the events that lead there. */
static struct stream in_state(enum stream_state wanted)
{
    struct stream stream;

    stream_init(&stream, 1, 9, wanted == STREAM_BLOCKED ? 1 : 0, wanted == STREAM_CHECKING,
                wanted == STREAM_MARKING ? 0 : 64);
    if (wanted == STREAM_NEW) {
        return stream;
    }
    (void)stream_step(&stream, STREAM_OPEN);
    if (wanted == STREAM_WAITING) {
        (void)stream_step(&stream, STREAM_BEAT);
        (void)stream_step(&stream, STREAM_PLANNED);
    }
    if (wanted == STREAM_SENDING || wanted == STREAM_BLOCKED) {
        (void)stream_step(&stream, STREAM_PLANNED);
    }
    if (wanted == STREAM_BLOCKED) {
        (void)stream_step(&stream, STREAM_SENT);
    }
    assert_int_equal(stream.state, wanted);
    return stream;
}

static void test_stream_step__every_open_state_takes_failure_close_and_drain(void **state)
{
    (void)state;
    for (int s = STREAM_CHECKING; s <= STREAM_SENDING; s++) {
        struct stream stream = in_state((enum stream_state)s);

        print_message("# state %d\n", s);
        assert_int_equal(stream_step(&stream, STREAM_FAIL), STREAM_CANCEL | STREAM_ABORT);
        assert_int_equal(stream.state, STREAM_ENDED);
        stream = in_state((enum stream_state)s);
        assert_int_equal(stream_step(&stream, STREAM_CLOSE), STREAM_CANCEL | STREAM_RELEASE);
        assert_int_equal(stream.state, STREAM_ENDED);
        stream = in_state((enum stream_state)s);
        if (s != STREAM_SENDING && s != STREAM_WAITING) {
            assert_int_equal(stream_step(&stream, STREAM_DRAIN), STREAM_CANCEL | STREAM_END);
            assert_int_equal(stream.state, STREAM_ENDED);
        }
    }
}

/* A stream that has a heartbeat in flight. */
static struct stream beating(enum stream_state wanted)
{
    struct stream stream = in_state(wanted);

    assert_int_equal(stream_step(&stream, STREAM_BEAT), STREAM_HEARTBEAT);
    assert_int_equal(stream.state, wanted);
    return stream;
}

static void test_stream_step__beats_while_it_waits(void **state)
{
    static const enum stream_state states[] = {STREAM_CHECKING, STREAM_BLOCKED, STREAM_MARKING,
                                               STREAM_PLANNING};

    (void)state;
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        struct stream stream = beating(states[i]);

        assert_int_equal(stream_step(&stream, STREAM_BEAT), 0); /* one at a time */
        assert_int_equal(stream_step(&stream, STREAM_SENT), 0);
        assert_int_equal(stream.state, states[i]);
        assert_int_equal(stream_step(&stream, STREAM_BEAT), STREAM_HEARTBEAT);
        assert_int_equal(stream_step(&stream, STREAM_DRAIN), STREAM_CANCEL);
        assert_int_equal(stream_step(&stream, STREAM_BEAT), 0);
        assert_int_equal(stream_step(&stream, STREAM_SENT), STREAM_END);
        assert_int_equal(stream.state, STREAM_ENDED);
        stream = beating(states[i]);
        assert_int_equal(stream_step(&stream, STREAM_FAIL), STREAM_CANCEL | STREAM_ABORT);
        stream = beating(states[i]);
        assert_int_equal(stream_step(&stream, STREAM_CLOSE), STREAM_CANCEL | STREAM_RELEASE);
    }
}

static void test_stream_step__a_plan_waits_for_the_heartbeat_in_flight(void **state)
{
    struct stream stream = beating(STREAM_PLANNING);
    uint64_t step = stream.step;

    (void)state;
    assert_int_equal(stream_step(&stream, STREAM_PLANNED), 0);
    assert_int_equal(stream_step(&stream, STREAM_NEWS), 0);
    assert_int_equal(stream_step(&stream, STREAM_SENT), STREAM_SEND);
    assert_int_equal(stream.step, step);
    assert_int_equal(stream.state, STREAM_SENDING);
    assert_int_equal(stream_step(&stream, STREAM_BEAT), 0);
    (void)stream_step(&stream, STREAM_SENT);
    assert_int_equal(stream.step, step + 1);

    stream = beating(STREAM_PLANNING);
    assert_int_equal(stream_step(&stream, STREAM_PLANNED), 0);
    assert_int_equal(stream_step(&stream, STREAM_DRAIN), STREAM_CANCEL); /* the plan is dropped */
    assert_int_equal(stream_step(&stream, STREAM_SENT), STREAM_END);
    assert_int_equal(stream.step, step);
}

static void test_stream_may_follow__only_where_nothing_can_come_between(void **state)
{
    static const struct {
        uint64_t step, end;
        uint32_t window;
        uint64_t given_out_below;
        bool may;
    } cases[] = {
        {5, 9, 0, 64, true},  {5, 6, 0, 64, false}, /* the last one */
        {5, 9, 0, 6, false},                        /* the next is not marked */
        {5, 9, 1, 64, false},                       /* nor within the window */
        {5, 9, 2, 64, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stream stream = opened(cases[i].step, cases[i].end, cases[i].window,
                                      cases[i].given_out_below, STREAM_ASK);

        assert_int_equal(stream_step(&stream, STREAM_PLANNED), STREAM_SEND);
        assert_int_equal(stream_may_follow(&stream), cases[i].may);
        assert_int_equal(stream_step(&stream, STREAM_DRAIN), 0);
        assert_false(stream_may_follow(&stream));
    }
}

static void test_stream_mark__raises_in_blocks_up_to_the_end(void **state)
{
    static const struct {
        uint64_t step, steps, mark;
    } cases[] = {
        {0, 1000, 64},     {63, 1000, 64},
        {64, 1000, 128},   {0, 10, 10},
        {999, 1000, 1000}, {64, 128, 128},
        {64, 129, 128},    {UINT64_MAX - 1, UINT64_MAX, UINT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(stream_mark(cases[i].step, cases[i].steps), cases[i].mark);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_step__sends_step_after_step_and_ends),
        cmocka_unit_test(test_stream_step__of_no_step_ends_at_once),
        cmocka_unit_test(test_stream_step__nothing_leaves_before_it_is_marked),
        cmocka_unit_test(test_stream_step__checks_the_digest_first),
        cmocka_unit_test(test_stream_step__window_is_counted_from_the_last_report),
        cmocka_unit_test(test_stream_step__window_at_the_largest_step),
        cmocka_unit_test(test_stream_revise__ends_where_it_begins),
        cmocka_unit_test(test_stream_revise__of_one_that_waits),
        cmocka_unit_test(test_stream_revise__behind_its_end),
        cmocka_unit_test(test_stream_step__drain_lets_the_message_in_flight_leave),
        cmocka_unit_test(test_stream_step__every_open_state_takes_failure_close_and_drain),
        cmocka_unit_test(test_stream_step__beats_while_it_waits),
        cmocka_unit_test(test_stream_step__a_plan_waits_for_the_heartbeat_in_flight),
        cmocka_unit_test(test_stream_may_follow__only_where_nothing_can_come_between),
        cmocka_unit_test(test_stream_mark__raises_in_blocks_up_to_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

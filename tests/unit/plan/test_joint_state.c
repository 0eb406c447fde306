/* Sums and clocks under changes are those of a fresh start, and the evaluator's. */
#include "plan/joint/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plan/joint/change.h"
#include "plan/joint/clock.h"
#include "plan/joint/timing.h"
#include "plan/joint/trace.h"
#include "unit/plan/fixture.h"

#define MAX_MB 8
#define N_SEEDS 60

struct scene {
    struct fixture fixture;
    struct batch batch;
    struct joint_problem problem;
    struct joint_state state;
};

/* A random batch of at most 40 sequences, each somewhere. False: no room was found for some. */
static bool scene_init(struct scene *scene, uint64_t seed)
{
    fixture_init(&scene->fixture, 1, 1, 1);
    scene->fixture.input.options.policy = "joint";
    fixture_randomize(&scene->fixture, seed);
    if (scene->fixture.input.n_sequences > 40) {
        scene->fixture.input.n_sequences = 40;
    }
    scene->fixture.input.options.mix = seed % 3 == 0 ? SKRULL_MIX_UNIFORM : SKRULL_MIX_ANY;
    fixture_batch(&scene->fixture, &scene->batch);
    assert_int_equal(joint_problem_init(&scene->problem, &scene->batch, &scene->batch.degrees), 0);
    assert_int_equal(joint_state_init(&scene->state, &scene->problem, MAX_MB), 0);
    for (uint32_t k = 0; k < scene->problem.n_sequences; k++) {
        struct joint_place place;
        unsigned tries = 0;

        do {
            place.mb = fixture_random(&scene->fixture, MAX_MB);
            place.node = fixture_random(&scene->fixture, scene->problem.n_nodes);
        } while (!joint_state_has_room(&scene->state, k, place) && ++tries < 2000);
        if (tries == 2000) {
            return false;
        }
        joint_state_add(&scene->state, k, place);
    }
    return true;
}

static void scene_deinit(struct scene *scene)
{
    fixture_deinit(&scene->fixture);
}

static struct placement *placements_of(struct scene *scene, const struct joint_place *places)
{
    struct placement *placements =
        ARENA_ARRAY(scene->fixture.scratch, struct placement, scene->problem.n_sequences);

    assert_non_null(placements);
    for (uint32_t k = 0; k < scene->problem.n_sequences; k++) {
        const uint32_t l = scene->problem.node_levels[places[k].node];

        placements[k].micro_batch = places[k].mb;
        placements[k].group_first = joint_first_rank(&scene->problem, places[k].node);
        placements[k].group_size = scene->problem.levels[l].size;
    }
    return placements;
}

static struct joint_place *save(struct scene *scene, uint32_t *ret_n_mb)
{
    struct joint_place *places =
        ARENA_ARRAY(scene->fixture.scratch, struct joint_place, scene->problem.n_sequences);

    assert_non_null(places);
    *ret_n_mb = joint_state_save(&scene->state, places);
    return places;
}

/* The state's time is that of the placements alone, and of a state that is loaded with them. */
static void check_time(struct scene *scene)
{
    struct joint_state *state = &scene->state;
    uint32_t n_mb;
    struct joint_place *places = save(scene, &n_mb);
    const int64_t clock_ns = joint_clock_all(state);
    int64_t total_ns;

    assert_int_equal(
        joint_time_placements(&scene->problem, placements_of(scene, places), &total_ns), 0);
    assert_int_equal(total_ns, joint_total_ns(&scene->problem, clock_ns, n_mb));
}

static void test_joint_state__clocks_are_the_evaluators(void **state)
{
    unsigned n = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        struct scene scene;

        if (scene_init(&scene, seed)) {
            check_time(&scene);
            n++;
        }
        scene_deinit(&scene);
    }
    assert_true(n > N_SEEDS / 2);
}

/* Busy and load of every rank, counted anew. */
static void check_sums(struct scene *scene)
{
    const struct joint_problem *problem = &scene->problem;
    struct joint_state fresh;

    assert_int_equal(joint_state_init(&fresh, problem, scene->state.max_mb), 0);
    for (uint32_t k = 0; k < problem->n_sequences; k++) {
        joint_state_add(&fresh, k, scene->state.links[k].place);
    }
    for (uint32_t r = 0; r < problem->n_ranks; r++) {
        assert_int_equal(fresh.load_ns[r], scene->state.load_ns[r]);
        assert_int_equal(fresh.busy_ns[r], scene->state.busy_ns[r]);
    }
    for (size_t i = 0; i < (size_t)fresh.max_mb * problem->n_ranks; i++) {
        assert_int_equal(fresh.own_ns[i], scene->state.own_ns[i]);
        assert_int_equal(fresh.buckets[i].padded, scene->state.buckets[i].padded);
        assert_int_equal(fresh.buckets[i].count, scene->state.buckets[i].count);
        assert_true(fresh.buckets[i].padded <= problem->bucket);
    }
}

static void random_change(struct scene *scene, struct joint_change *change)
{
    const uint32_t n = scene->problem.n_sequences;
    const uint32_t a = fixture_random(&scene->fixture, n), b = fixture_random(&scene->fixture, n);

    *change = (struct joint_change){.n_moves = 1};
    change->moves[0].k = a;
    change->moves[0].place.mb = fixture_random(&scene->fixture, scene->state.n_mb);
    change->moves[0].place.node = fixture_random(&scene->fixture, scene->problem.n_nodes);
    if (a != b && fixture_random(&scene->fixture, 2)) {
        change->moves[0].place = scene->state.links[b].place;
        change->moves[1] = (struct joint_move){.k = b, .place = scene->state.links[a].place};
        change->n_moves = 2;
    }
}

/* Trials: the time of the touched blocks, and clocks that stay right when kept or undone. */
static void check_changes(struct scene *scene)
{
    struct joint_state *state = &scene->state;
    const size_t n_ranks = scene->problem.n_ranks;
    int64_t clocks[64];

    (void)joint_clock_all(state);
    for (unsigned i = 0; i < 200; i++) {
        struct joint_change change;
        int64_t ns;

        random_change(scene, &change);
        ns = joint_change_try(state, &change, JOINT_NO_TIME);
        if (ns != JOINT_NO_TIME && i % 2 == 0) {
            joint_change_keep(state, &change);
        } else if (ns != JOINT_NO_TIME) {
            joint_change_undo(state, &change);
        }
        memcpy(clocks, &state->clocks[state->n_mb * n_ranks], n_ranks * sizeof(clocks[0]));
        (void)joint_clock_all(state);
        assert_memory_equal(clocks, &state->clocks[state->n_mb * n_ranks],
                            n_ranks * sizeof(clocks[0]));
    }
    check_sums(scene);
    check_time(scene);
}

static void test_joint_change__keeps_clocks_right(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        struct scene scene;

        if (scene_init(&scene, seed)) {
            check_changes(&scene);
        }
        scene_deinit(&scene);
    }
}

/* A limit refuses what leaves a rank busy for as long, and changes nothing then. */
static void test_joint_change_try__refuses_beyond_the_limit(void **state)
{
    static const uint32_t lengths[] = {1000, 500};
    struct joint_change change = {.moves = {{.k = 1, .place = {.mb = 0, .node = 0}}}, .n_moves = 1};
    struct scene scene;

    (void)state;
    fixture_init(&scene.fixture, 1, 2, 4000);
    scene.fixture.input.options.policy = "joint";
    fixture_set(&scene.fixture, lengths, 2);
    fixture_batch(&scene.fixture, &scene.batch);
    assert_int_equal(joint_problem_init(&scene.problem, &scene.batch, &scene.batch.degrees), 0);
    assert_int_equal(joint_state_init(&scene.state, &scene.problem, 2), 0);
    joint_state_add(&scene.state, 0, (struct joint_place){.mb = 0, .node = 0});
    joint_state_add(&scene.state, 1, (struct joint_place){.mb = 0, .node = 1});
    (void)joint_clock_all(&scene.state);
    assert_int_equal(joint_change_try(&scene.state, &change, scene.state.busy_ns[0] + 1),
                     JOINT_NO_TIME);
    assert_int_equal(scene.state.links[1].place.node, 1);
    check_sums(&scene);
    scene_deinit(&scene);
}

/* <1, 2>: a shard on both ranks and a longer local sequence on rank 1: that and the shard are on
 * the path to either end; the shorter local one on rank 0 is not. */
static void test_joint_trace_run__follows_the_wait(void **state)
{
    static const uint32_t lengths[] = {4000, 3000, 1000};
    uint32_t path[3];
    struct joint_trace trace;
    struct scene scene;

    (void)state;
    fixture_init(&scene.fixture, 1, 2, 8000);
    scene.fixture.input.options.policy = "joint";
    fixture_set(&scene.fixture, lengths, 3);
    fixture_batch(&scene.fixture, &scene.batch);
    assert_int_equal(joint_problem_init(&scene.problem, &scene.batch, &scene.batch.degrees), 0);
    assert_int_equal(joint_state_init(&scene.state, &scene.problem, 2), 0);
    assert_int_equal(joint_trace_init(&trace, &scene.problem), 0);
    joint_state_add(&scene.state, 0, (struct joint_place){.mb = 0, .node = 2});
    joint_state_add(&scene.state, 1, (struct joint_place){.mb = 0, .node = 1});
    joint_state_add(&scene.state, 2, (struct joint_place){.mb = 0, .node = 0});
    (void)joint_clock_all(&scene.state);
    assert_int_equal(joint_trace_run(&trace, &scene.state, 0, path, 3), 2);
    assert_int_equal(path[0], 0);
    assert_int_equal(path[1], 1);
    scene_deinit(&scene);
}

/* Orders are tried without moving anything: the clock is that of the renumbered placement. */
static void test_joint_clock_ordered__is_the_time_of_what_is_saved(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        struct scene scene;

        if (scene_init(&scene, seed)) {
            struct joint_place *places;
            int64_t clock_ns;
            uint32_t n_mb;

            for (uint32_t i = 0; i < scene.state.n_mb; i++) {
                scene.state.order[i] = scene.state.n_mb - 1 - i;
            }
            clock_ns = joint_clock_ordered(&scene.state);
            places = save(&scene, &n_mb);
            joint_state_reset_order(&scene.state);
            joint_state_load(&scene.state, places);
            assert_int_equal(scene.state.n_mb, n_mb);
            assert_int_equal(joint_clock_all(&scene.state), clock_ns);
        }
        scene_deinit(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joint_state__clocks_are_the_evaluators),
        cmocka_unit_test(test_joint_change__keeps_clocks_right),
        cmocka_unit_test(test_joint_change_try__refuses_beyond_the_limit),
        cmocka_unit_test(test_joint_trace_run__follows_the_wait),
        cmocka_unit_test(test_joint_clock_ordered__is_the_time_of_what_is_saved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The program, in milliseconds. Sequence k in micro-batch j on group n: x[k,j,n], one for each k.
 * Rank r has work in j: u[j,r], and its bucket holds: sum of slots x <= C u. A group of several
 * ranks is used: g[j,n] >= x[k,j,n]. Clocks of r: c[j,r] after micro-batch j, a[j,r] before its
 * groups meet, t[j,n] when group n ends:
 *   a[j,r] >= c[j-1,r] + F u[j,r] + local computation of r,
 *   a[j,r] >= c[j-1,r] + F u[j,r] + sum over its groups of base g[j,n] + slope x tokens,
 *   t[j,n] >= a[j,r] + computation of n - B (1 - g[j,n])    for each member r,
 *   t[j,n] >= t[j,m] + computation of n - B (1 - g[j,n])    for each smaller group m inside,
 *   c[j,r] >= a[j,r], c[j,r] >= t[j,n], T >= c[last,r], minimise T,
 * with B the time that is to be beaten. Not needed, but it helps: R T >= all work, and the longest
 * sequence is on the first group of its size, since groups of a size can change places (not where
 * some of them lie in a node and others do not). Base and slope are those of the group's link.
 */
#include "plan/exact/program.h"

#include <stdlib.h>

#include <coin/Cbc_C_Interface.h>

#include "cost/cost.h"

#define MS 1e-6
#define IS_ONE 0.5

struct builder {
    const struct exact_program *program;
    const struct joint_problem *problem;
    Cbc_Model *model;
    int *columns; /* [n_terms] of the row being built */
    double *coefficients;
    int n_terms;
    int first_used, first_group, first_end, first_ready, first_met, time_column;
    double fixed_ms, cap_ms;
    double base_ms[COST_ACROSS + 1], slope_ms[COST_ACROSS + 1]; /* by link */
};

static uint32_t n_groups(const struct joint_problem *problem)
{
    return problem->n_nodes - problem->first_group;
}

uint64_t exact_program_columns(const struct exact_program *program)
{
    const struct joint_problem *problem = program->problem;
    const uint64_t per_mb = (uint64_t)problem->n_sequences * problem->n_nodes +
                            3 * (uint64_t)problem->n_ranks + 2 * (uint64_t)n_groups(problem) +
                            problem->n_ranks;

    return per_mb * program->n_mb + 1;
}

static int x_of(const struct builder *b, uint32_t k, uint32_t mb, uint32_t node)
{
    return (int)((k * b->program->n_mb + mb) * b->problem->n_nodes + node);
}

static int rank_column(const struct builder *b, int first, uint32_t mb, uint32_t rank)
{
    return first + (int)(mb * b->problem->n_ranks + rank);
}

static int group_column(const struct builder *b, int first, uint32_t mb, uint32_t node)
{
    return first + (int)(mb * n_groups(b->problem) + node - b->problem->first_group);
}

static void add_term(struct builder *b, int column, double coefficient)
{
    b->columns[b->n_terms] = column;
    b->coefficients[b->n_terms++] = coefficient;
}

static void end_row(struct builder *b, char sense, double right)
{
    Cbc_addRow(b->model, "", b->n_terms, b->columns, b->coefficients, sense, right);
    b->n_terms = 0;
}

static bool holds(const struct joint_problem *problem, uint32_t node, uint32_t rank)
{
    const uint32_t first = joint_first_rank(problem, node);

    return rank >= first && rank - first < problem->levels[problem->node_levels[node]].size;
}

static const struct joint_level *level_of(const struct joint_problem *problem, uint32_t node)
{
    return &problem->levels[problem->node_levels[node]];
}

/* Computation of a group in a micro-batch, with a sign. */
static void add_work(struct builder *b, uint32_t mb, uint32_t node, double sign)
{
    for (uint32_t k = 0; k < b->problem->n_sequences; k++) {
        add_term(b, x_of(b, k, mb, node),
                 sign * (double)level_of(b->problem, node)->comp_ns[k] * MS);
    }
}

static void add_column(struct builder *b, double upper, double objective, bool is_integer)
{
    Cbc_addCol(b->model, "", 0, upper, objective, is_integer ? 1 : 0, 0, NULL, NULL);
}

static void add_columns(struct builder *b)
{
    const struct joint_problem *problem = b->problem;
    const uint32_t n_mb = b->program->n_mb;
    int n = 0;

    for (uint32_t k = 0; k < problem->n_sequences; k++) {
        for (uint32_t i = 0; i < n_mb * problem->n_nodes; i++, n++) {
            const uint32_t node = i % problem->n_nodes;
            const struct joint_level *level = level_of(problem, node);
            const bool is_barred =
                level->slots[k] == JOINT_NONE ||
                (k == problem->order[0] && node != level->first_node && problem->is_even);

            add_column(b, is_barred ? 0 : 1, 0, true);
        }
    }
    b->first_used = n;
    n += (int)(n_mb * problem->n_ranks);
    b->first_group = n;
    n += (int)(n_mb * n_groups(problem));
    for (int i = b->first_used; i < n; i++) {
        add_column(b, 1, 0, true);
    }
    b->first_ready = n;
    n += (int)(n_mb * problem->n_ranks);
    b->first_end = n;
    n += (int)(n_mb * problem->n_ranks);
    b->first_met = n;
    n += (int)(n_mb * n_groups(problem));
    for (int i = b->first_ready; i < n; i++) {
        add_column(b, b->cap_ms, 0, false);
    }
    b->time_column = n;
    add_column(b, b->cap_ms, 1, false);
    Cbc_setColLower(b->model, n, (double)b->program->floor_ns * MS);
}

/* Every sequence somewhere; the longest first to level the ranks' names. */
static void add_assignments(struct builder *b)
{
    for (uint32_t k = 0; k < b->problem->n_sequences; k++) {
        for (uint32_t i = 0; i < b->program->n_mb * b->problem->n_nodes; i++) {
            add_term(b, x_of(b, k, 0, 0) + (int)i, 1);
        }
        end_row(b, 'E', 1);
    }
}

/* Buckets and used ranks; one size a rank where mixes must be uniform. */
static void add_buckets(struct builder *b, uint32_t mb, uint32_t rank)
{
    const struct joint_problem *problem = b->problem;

    for (uint32_t node = 0; node < problem->n_nodes; node++) {
        for (uint32_t k = 0; k < problem->n_sequences && holds(problem, node, rank); k++) {
            const uint32_t slot = level_of(problem, node)->slots[k];

            if (slot != JOINT_NONE) {
                add_term(b, x_of(b, k, mb, node), slot);
            }
        }
    }
    add_term(b, rank_column(b, b->first_used, mb, rank), -(double)problem->bucket);
    end_row(b, 'L', 0);
    for (uint32_t k = 0; k < problem->n_sequences && problem->is_uniform; k++) {
        if (problem->has_local) {
            add_term(b, x_of(b, k, mb, rank), 1);
        }
        for (uint32_t node = problem->first_group; node < problem->n_nodes; node++) {
            if (holds(problem, node, rank)) {
                add_term(b, group_column(b, b->first_group, mb, node), 1);
            }
        }
        end_row(b, 'L', 1);
    }
}

/* Numbers have no gaps, and where no rank waits for another the fuller micro-batches come first:
 * their order does not matter there. */
static void add_order(struct builder *b, uint32_t mb, uint32_t rank)
{
    const struct joint_problem *problem = b->problem;

    add_term(b, rank_column(b, b->first_used, mb, rank), 1);
    for (uint32_t r = 0; r < problem->n_ranks; r++) {
        add_term(b, rank_column(b, b->first_used, mb - 1, r), -1);
    }
    end_row(b, 'L', 0);
    for (uint32_t k = 0; k < problem->n_sequences && problem->n_nodes == problem->n_ranks; k++) {
        if (problem->levels[0].slots[k] != JOINT_NONE) {
            add_term(b, x_of(b, k, mb, rank), problem->levels[0].slots[k]);
            add_term(b, x_of(b, k, mb - 1, rank), -(double)problem->levels[0].slots[k]);
        }
    }
    if (b->n_terms > 0) {
        end_row(b, 'L', 0);
    }
}

static void add_used_groups(struct builder *b, uint32_t mb, uint32_t node)
{
    for (uint32_t k = 0; k < b->problem->n_sequences; k++) {
        add_term(b, x_of(b, k, mb, node), 1);
        add_term(b, group_column(b, b->first_group, mb, node), -1);
        end_row(b, 'L', 0);
    }
}

/* Begins a row a[j,r] - c[j-1,r] - F u[j,r] ... */
static void begin_ready(struct builder *b, uint32_t mb, uint32_t rank)
{
    add_term(b, rank_column(b, b->first_ready, mb, rank), 1);
    add_term(b, rank_column(b, b->first_used, mb, rank), -b->fixed_ms);
    if (mb > 0) {
        add_term(b, rank_column(b, b->first_end, mb - 1, rank), -1);
    }
}

static void add_own(struct builder *b, uint32_t mb, uint32_t rank)
{
    const struct joint_problem *problem = b->problem;

    begin_ready(b, mb, rank);
    if (problem->has_local) {
        add_work(b, mb, rank, -1);
    }
    end_row(b, 'G', 0);
    begin_ready(b, mb, rank);
    for (uint32_t node = problem->first_group; node < problem->n_nodes; node++) {
        const uint32_t link = problem->node_links[node];

        if (!holds(problem, node, rank)) {
            continue;
        }
        add_term(b, group_column(b, b->first_group, mb, node), -b->base_ms[link]);
        for (uint32_t k = 0; k < problem->n_sequences; k++) {
            add_term(b, x_of(b, k, mb, node), -b->slope_ms[link] * problem->lengths[k]);
        }
    }
    end_row(b, 'G', 0);
    add_term(b, rank_column(b, b->first_end, mb, rank), 1);
    add_term(b, rank_column(b, b->first_ready, mb, rank), -1);
    end_row(b, 'G', 0);
}

/* t[j,n] >= `before` + computation of n, if n is used. */
static void add_meeting(struct builder *b, uint32_t mb, uint32_t node, int before)
{
    add_term(b, group_column(b, b->first_met, mb, node), 1);
    add_term(b, before, -1);
    add_term(b, group_column(b, b->first_group, mb, node), -b->cap_ms);
    add_work(b, mb, node, -1);
    end_row(b, 'G', -b->cap_ms);
}

static void add_group(struct builder *b, uint32_t mb, uint32_t node)
{
    const struct joint_problem *problem = b->problem;
    const uint32_t first = joint_first_rank(problem, node);

    add_used_groups(b, mb, node);
    for (uint32_t r = first; r < first + level_of(problem, node)->size; r++) {
        add_meeting(b, mb, node, rank_column(b, b->first_ready, mb, r));
        add_term(b, rank_column(b, b->first_end, mb, r), 1);
        add_term(b, group_column(b, b->first_met, mb, node), -1);
        end_row(b, 'G', 0);
    }
    for (uint32_t inner = problem->first_group; inner < node; inner++) {
        if (problem->node_levels[inner] < problem->node_levels[node] &&
            holds(problem, node, joint_first_rank(problem, inner))) {
            add_meeting(b, mb, node, group_column(b, b->first_met, mb, inner));
        }
    }
}

static void add_volume(struct builder *b)
{
    const struct joint_problem *problem = b->problem;

    add_term(b, b->time_column, problem->n_ranks);
    for (uint32_t mb = 0; mb < b->program->n_mb; mb++) {
        for (uint32_t node = 0; node < problem->n_nodes; node++) {
            add_work(b, mb, node, -(double)level_of(problem, node)->size);
        }
        for (uint32_t r = 0; r < problem->n_ranks; r++) {
            add_term(b, rank_column(b, b->first_used, mb, r), -b->fixed_ms);
        }
    }
    end_row(b, 'G', 0);
}

static void add_rows(struct builder *b)
{
    const struct joint_problem *problem = b->problem;
    const uint32_t n_mb = b->program->n_mb;

    add_assignments(b);
    for (uint32_t mb = 0; mb < n_mb; mb++) {
        for (uint32_t r = 0; r < problem->n_ranks; r++) {
            add_buckets(b, mb, r);
            if (mb > 0) {
                add_order(b, mb, r);
            }
            add_own(b, mb, r);
        }
        for (uint32_t node = problem->first_group; node < problem->n_nodes; node++) {
            add_group(b, mb, node);
        }
    }
    for (uint32_t r = 0; r < problem->n_ranks; r++) {
        add_term(b, b->time_column, 1);
        add_term(b, rank_column(b, b->first_end, n_mb - 1, r), -1);
        end_row(b, 'G', 0);
    }
    add_volume(b);
}

static void read_places(const struct builder *b, uint32_t (*places)[2])
{
    const double *solution = Cbc_bestSolution(b->model);

    for (uint32_t k = 0; k < b->problem->n_sequences; k++) {
        for (uint32_t i = 0; i < b->program->n_mb * b->problem->n_nodes; i++) {
            if (solution[x_of(b, k, 0, 0) + (int)i] > IS_ONE) {
                places[k][0] = i / b->problem->n_nodes;
                places[k][1] = i % b->problem->n_nodes;
            }
        }
    }
}

static void solve(struct builder *b, uint32_t (*places)[2], struct exact_answer *ret_answer)
{
    Cbc_setObjSense(b->model, 1);
    Cbc_setLogLevel(b->model, 0);
    Cbc_setMaximumSeconds(b->model, b->program->max_seconds);
    Cbc_setParameter(b->model, "threads", "0");
    (void)Cbc_solve(b->model);
    ret_answer->is_found = Cbc_bestSolution(b->model) != NULL && !Cbc_isProvenInfeasible(b->model);
    ret_answer->is_proved = Cbc_isProvenInfeasible(b->model) || Cbc_isProvenOptimal(b->model);
    ret_answer->bound_ns = Cbc_getBestPossibleObjValue(b->model) / MS;
    if (ret_answer->is_found) {
        read_places(b, places);
    }
}

int exact_program_solve(const struct exact_program *program, uint32_t (*places)[2],
                        struct exact_answer *ret_answer)
{
    const struct joint_problem *problem = program->problem;
    const struct skrull_cost_model *cost = problem->batch->cost;
    const struct cost_line inside = cost_exchange_floor(cost, COST_INSIDE);
    const struct cost_line across = cost_exchange_floor(cost, COST_ACROSS);
    const size_t n_columns = (size_t)exact_program_columns(program);
    bool is_whole;
    struct builder b = {
        .program = program,
        .problem = problem,
        .fixed_ms = (double)problem->fixed_ns * MS,
        .base_ms = {(double)inside.base_ns * MS, (double)across.base_ns * MS},
        .slope_ms = {(double)inside.slope_q20 / 1048576.0 * MS,
                     (double)across.slope_q20 / 1048576.0 * MS},
        .cap_ms = (double)program->cap_ns * MS,
    };

    b.columns = calloc(n_columns, sizeof(*b.columns));
    b.coefficients = calloc(n_columns, sizeof(*b.coefficients));
    b.model = Cbc_newModel();
    is_whole = b.columns && b.coefficients && b.model;
    if (is_whole) {
        add_columns(&b);
        add_rows(&b);
        solve(&b, places, ret_answer);
    }
    free(b.columns);
    free(b.coefficients);
    if (b.model) {
        Cbc_deleteModel(b.model);
    }
    return is_whole ? 0 : SKRULL_ERR_RESOURCE_EXHAUSTED;
}

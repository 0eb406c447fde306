/*
 * The chain of group sizes. Sizes that divide one another, as aligned groups, are nested, so that a
 * fixed order of the groups cannot deadlock.
 */
#include "plan/degrees.h"

#include <stdbool.h>

/* Appends the last size times each prime factor of `n`, ascending. */
static void multiply_chain(struct degrees *chain, uint32_t n)
{
    for (uint32_t p = 2; n > 1; p++) {
        if ((uint64_t)p * p > n) {
            p = n; /* what is left is prime */
        }
        while (n % p == 0) {
            chain->sizes[chain->n] = chain->sizes[chain->n - 1] * p;
            chain->n++;
            n /= p;
        }
    }
}

static bool is_allowed(const struct skrull_planner_options *options, uint32_t size)
{
    return size >= options->min_degree &&
           (options->max_degree == 0 || size <= options->max_degree) &&
           (options->ranks_per_node == 0 || options->ranks_per_node % size == 0);
}

static int refuse(const struct skrull_planner_options *options, const char *sizes,
                  struct skrull_error *err)
{
    return skrull_error_set(
        err, SKRULL_ERR_INVALID_ARGUMENT,
        "parallel: of %s (cp %u, dp %u) no group size is left by min_degree %u, "
        "max_degree %u, ranks_per_node %u: relax one of them",
        sizes, options->cp, options->dp, options->min_degree, options->max_degree,
        options->ranks_per_node);
}

static void filter(const struct skrull_planner_options *options, struct degrees *chain)
{
    size_t n = 0;

    for (size_t i = 0; i < chain->n; i++) {
        if (is_allowed(options, chain->sizes[i])) {
            chain->sizes[n++] = chain->sizes[i];
        }
    }
    chain->n = n;
}

static void fixed_chain(uint32_t cp, struct degrees *chain)
{
    chain->sizes[0] = 1;
    chain->sizes[1] = cp;
    chain->n = cp > 1 ? 2 : 1;
}

int degrees_of_job(const struct skrull_planner_options *options, struct degrees *ret_degrees,
                   struct skrull_error *err)
{
    const bool is_elastic = options->cp_mode == SKRULL_CP_MODE_ELASTIC;
    struct degrees chain = {.sizes = {1}, .n = 1};

    if (is_elastic) {
        multiply_chain(&chain, options->cp);
        multiply_chain(&chain, options->dp);
    } else {
        fixed_chain(options->cp, &chain);
    }
    filter(options, &chain);
    if (chain.n == 0) {
        return refuse(options, is_elastic ? "the elastic chain" : "1 and cp", err);
    }
    *ret_degrees = chain;
    return 0;
}

int degrees_of_policy(const struct skrull_planner_options *options, struct degrees *ret_degrees,
                      struct skrull_error *err)
{
    struct degrees chain;

    fixed_chain(options->cp, &chain);
    filter(options, &chain);
    if (chain.n == 0) {
        return refuse(options, "1 and cp, which the policy uses,", err);
    }
    *ret_degrees = chain;
    return 0;
}

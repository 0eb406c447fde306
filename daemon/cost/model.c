/*
 * The cost model: a model's shape, a FLOP function and a hardware profile become nanoseconds
 * (the paper's equations 13 to 16 with the constants of profiles.def). All factors that do not
 * depend on a sequence are multiplied once, at creation. A model is immutable: any thread may use
 * it.
 */
#include "cost/cost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/flops.h"

struct cost_profile {
    const char *name;
    double peak_flops, efficiency; /* FLOP/s; the share of it that is reached */
    double shard_factor;           /* work of a distributed sequence, relative to a local one */
    double exchange_ns, exchange_ns_per_byte; /* one exchange, a layer */
    double fixed_ns;                          /* a micro-batch, a layer */
    double step_ns, step_ns_per_parameter;    /* once an iteration */
    uint32_t gpus_per_node;                   /* 0: no nodes are known */
    double across_ns, across_ns_per_byte;     /* one exchange across nodes, a layer */
};

/* An exchange, all layers, forward and backward. */
struct exchange {
    double ns, ns_per_token;
};

/* GPUs in the order of their numbers: tensor-parallel peers, data ranks, pipeline stages. */
struct nodes {
    uint64_t size;     /* GPUs of a node; 0: no nodes are known */
    uint64_t rank;     /* GPUs of a data rank in a stage */
    uint64_t stage;    /* GPUs of a stage */
    uint64_t n_stages; /* that are looked at */
};

struct skrull_cost_model {
    const struct cost_shape *shape;
    flops_fn flops;
    double ns_per_flop; /* of one layer's forward FLOPs: all layers, forward and backward */
    double shard_factor;
    struct exchange exchange[COST_ACROSS + 1]; /* by link */
    struct nodes nodes;
    int64_t fixed_ns, step_ns;
};

#define PRESET(preset, h, h_kv, n_layers, n_parameters)                                            \
    {.name = (preset),                                                                             \
     .hidden = (h),                                                                                \
     .kv_hidden = (h_kv),                                                                          \
     .layers = (n_layers),                                                                         \
     .parameters = (n_parameters)},
static const struct cost_shape presets[] = {
#include "cost/presets.def"
};
#undef PRESET

#define PROFILE(...) {__VA_ARGS__},
static const struct cost_profile profiles[] = {
#include "cost/profiles.def"
};
#undef PROFILE

#define N_PRESETS (sizeof(presets) / sizeof(presets[0]))
#define N_PROFILES (sizeof(profiles) / sizeof(profiles[0]))

/* Appends `name` to a comma-separated list, cutting what does not fit. */
static void list_add(char *list, size_t size, const char *name)
{
    const size_t len = strlen(list);

    (void)snprintf(list + len, size - len, "%s%s", len > 0 ? ", " : "", name);
}

static int find_preset(const char *name, const struct cost_shape **ret, struct skrull_error *err)
{
    char known[200] = "";

    if (!name || !*name) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "model.preset is missing");
    }
    for (size_t i = 0; i < N_PRESETS; i++) {
        if (strcmp(presets[i].name, name) == 0) {
            *ret = &presets[i];
            return 0;
        }
        list_add(known, sizeof(known), presets[i].name);
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "model.preset: unknown preset %.64s, there are: %s", name, known);
}

static int find_profile(const char *name, const struct cost_profile **ret, struct skrull_error *err)
{
    char known[200] = "";

    if (!name || !*name) {
        name = "paper-h100";
    }
    for (size_t i = 0; i < N_PROFILES; i++) {
        if (strcmp(profiles[i].name, name) == 0) {
            *ret = &profiles[i];
            return 0;
        }
        list_add(known, sizeof(known), profiles[i].name);
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "hardware.profile: unknown profile %.64s, there are: %s", name, known);
}

/* The one place where a cost leaves floating point. */
static int64_t round_ns(double ns)
{
    if (!(ns < (double)COST_MAX_NS)) {
        return COST_MAX_NS;
    }
    return (int64_t)(ns + 0.5);
}

static uint32_t at_least_1(uint32_t n)
{
    return n > 0 ? n : 1;
}

/* A job that confines groups says what a node is; else the profile does. */
static struct nodes nodes_of(const struct skrull_cost_options *options,
                             const struct cost_profile *profile)
{
    const uint64_t rank = at_least_1(options->tp), n_stages = at_least_1(options->pp);

    if (profile->gpus_per_node == 0) {
        return (struct nodes){0};
    }
    if (options->ranks_per_node > 0) {
        return (struct nodes){.size = options->ranks_per_node, .rank = 1, .n_stages = 1};
    }
    return (struct nodes){
        .size = profile->gpus_per_node,
        .rank = rank,
        .stage = rank * options->ranks,
        /* Where stages begin in a node repeats after as many as it has GPUs, if not before. */
        .n_stages = n_stages < profile->gpus_per_node ? n_stages : profile->gpus_per_node};
}

static void model_fill(struct skrull_cost_model *model, const struct cost_profile *profile)
{
    const struct cost_shape *shape = model->shape;
    const double passes = 3.0 * shape->layers;             /* backward is twice forward */
    const double bytes_per_token = 4.0 * shape->kv_hidden; /* K and V, two bytes each */
    const bool has_nodes = profile->gpus_per_node > 0;
    const double across_ns = has_nodes ? profile->across_ns : profile->exchange_ns;
    const double across_ns_per_byte =
        has_nodes ? profile->across_ns_per_byte : profile->exchange_ns_per_byte;

    model->ns_per_flop = passes * 1e9 / (profile->peak_flops * profile->efficiency);
    model->shard_factor = profile->shard_factor;
    model->exchange[COST_INSIDE] =
        (struct exchange){.ns = passes * profile->exchange_ns,
                          .ns_per_token = passes * profile->exchange_ns_per_byte * bytes_per_token};
    model->exchange[COST_ACROSS] = (struct exchange){
        .ns = passes * across_ns, .ns_per_token = passes * across_ns_per_byte * bytes_per_token};
    model->fixed_ns = round_ns(profile->fixed_ns * shape->layers);
    model->step_ns =
        round_ns(profile->step_ns + profile->step_ns_per_parameter * shape->parameters);
}

int skrull_cost_model_new(const struct skrull_cost_options *options,
                          struct skrull_cost_model **ret_model, struct skrull_error *err)
{
    const struct cost_profile *profile = NULL;
    const struct cost_shape *shape = NULL;
    struct skrull_cost_model *model;
    flops_fn flops = NULL;
    int rc;

    rc = find_preset(options->preset, &shape, err);
    rc = rc ? rc : find_profile(options->profile, &profile, err);
    rc = rc ? rc : flops_find(options->flops, &flops, err);
    if (rc) {
        return rc;
    }
    model = calloc(1, sizeof(*model));
    if (!model) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory for a cost model");
    }
    model->shape = shape;
    model->flops = flops;
    model->nodes = nodes_of(options, profile);
    model_fill(model, profile);
    *ret_model = model;
    return 0;
}

void skrull_cost_model_free(struct skrull_cost_model *model)
{
    free(model);
}

int64_t skrull_cost_step_ns(const struct skrull_cost_model *model)
{
    return model->step_ns;
}

int64_t cost_comp_ns(const struct skrull_cost_model *model, uint32_t length, uint32_t degree)
{
    const double ns = model->ns_per_flop * model->flops(model->shape, (double)length);

    return round_ns(degree > 1 ? ns * model->shard_factor / (double)degree : ns);
}

/* The group's GPUs fill a stretch of each stage, and it crosses nodes if any of these stretches
 * does. That is exact where a data rank is several GPUs, too: each of them exchanges with its likes
 * on the other ranks, and a border inside the stretch lies between the first and the last of some
 * likes. */
enum cost_link cost_link_of(const struct skrull_cost_model *model, uint32_t first, uint32_t size)
{
    const struct nodes *nodes = &model->nodes;

    for (uint64_t i = 0; i < nodes->n_stages && size > 1; i++) {
        const uint64_t begin = i * nodes->stage + first * nodes->rank;

        if (begin / nodes->size != (begin + size * nodes->rank - 1) / nodes->size) {
            return COST_ACROSS;
        }
    }
    return COST_INSIDE;
}

struct cost_links cost_links_of_size(const struct skrull_cost_model *model, uint32_t n_ranks,
                                     uint32_t size)
{
    struct cost_links links = {.least = COST_ACROSS, .most = COST_INSIDE};

    if (model->nodes.size == 0) {
        return (struct cost_links){.least = COST_INSIDE, .most = COST_INSIDE};
    }
    for (uint32_t i = 0; i < n_ranks / size; i++) {
        const enum cost_link link = cost_link_of(model, i * size, size);

        links.least = link < links.least ? link : links.least;
        links.most = link > links.most ? link : links.most;
    }
    return links;
}

int64_t cost_exchange_ns(const struct skrull_cost_model *model, enum cost_link link,
                         uint64_t tokens)
{
    const struct exchange *exchange = &model->exchange[link];

    if (tokens == 0) {
        return 0;
    }
    return round_ns(exchange->ns + exchange->ns_per_token * (double)tokens);
}

/* One nanosecond of slack covers the rounding of a time; one unit of the slope that of the slope.
 */
struct cost_line cost_exchange_floor(const struct skrull_cost_model *model, enum cost_link link)
{
    const int64_t base_ns = round_ns(model->exchange[link].ns);

    return (struct cost_line){
        .base_ns = base_ns > 2 ? base_ns - 2 : 0,
        .slope_q20 = (int64_t)(model->exchange[link].ns_per_token * 1048576.0),
    };
}

struct cost_line cost_exchange_ceiling(const struct skrull_cost_model *model, enum cost_link link)
{
    return (struct cost_line){
        .base_ns = round_ns(model->exchange[link].ns) + 2,
        .slope_q20 = (int64_t)(model->exchange[link].ns_per_token * 1048576.0) + 1,
    };
}

int64_t cost_fixed_ns(const struct skrull_cost_model *model)
{
    return model->fixed_ns;
}

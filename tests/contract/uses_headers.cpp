/* What a trainer in C++ does with the public headers; test_headers.py compiles, links and runs it. */
#include <skrull/client.h>
#include <skrull/planner.h>

#include <cstdio>
#include <memory>
#include <string>

/* Fills every struct that a caller fills. */
static bool can_fill()
{
    skrull_job job = {};
    skrull_dataset data = {};
    skrull_stream_options options = {};
    const char *roots[] = {"/"};

    data.index = "a.txt";
    data.over_length = SKRULL_OVER_LENGTH_DROP;
    job.name = "a-job";
    job.model.preset = "qwen2.5-0.5b";
    job.parallel.dp = job.parallel.cp = 1;
    job.batch.shard = SKRULL_SHARD_ZIGZAG;
    job.order = SKRULL_ORDER_SHUFFLE;
    job.data = &data;
    job.n_data = 1;
    options.job = job.name;
    options.window = SKRULL_WINDOW_NONE;
    options.fallback = SKRULL_FALLBACK_LOCAL;
    options.fallback_roots = roots;
    options.n_fallback_roots = 1;
    options.on_event = [](void *, const char *) {};
    return job.info.n_indexes == 0 && options.give_up_ms == 0;
}

/* Plans a batch of one sequence. */
static int plan_one(skrull_plan **ret_plan, skrull_error *err)
{
    skrull_cost_options cost = {};
    skrull_planner_input input = {};
    skrull_sequence sequence = {};
    skrull_cost_model *model = nullptr;

    cost.preset = "qwen2.5-0.5b";
    if (skrull_cost_model_new(&cost, &model, err) < 0) {
        return -1;
    }
    std::unique_ptr<skrull_cost_model, void (*)(skrull_cost_model *)> owner(model, skrull_cost_model_free);
    sequence.length = sequence.loss_tokens = 100;
    input.options.dp = input.options.cp = 1;
    input.options.bucket_tokens = 1000;
    input.cost = model;
    input.sequences = &sequence;
    input.n_sequences = 1;
    return skrull_planner_run(&input, ret_plan, err);
}

int main()
{
    skrull_client_options options = {};
    skrull_client *client = nullptr;
    skrull_plan *plan = nullptr;
    skrull_error err = {};

    options.server = "127.0.0.1:1";
    if (!can_fill() || skrull_client_new(&options, &client, &err) < 0 ||
        std::string(skrull_client_server(client)) != options.server || plan_one(&plan, &err) < 0) {
        std::fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    std::printf("%zu rank, %zu segment of %u tokens\n", plan->n_ranks, plan->n_segments,
                plan->segments[0].token_end);
    skrull_plan_free(plan);
    skrull_client_free(client);
    return 0;
}

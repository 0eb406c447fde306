/* A ring of plans. Its bound is the stream's second brake, beside the daemon's window: the reader
 * asks for no message that it has no place for. */
#include "plan_queue.h"

#include <assert.h>
#include <stdlib.h>

int plan_queue_init(struct plan_queue *queue, size_t capacity, struct skrull_error *err)
{
    struct skrull_plan **plans = calloc(capacity, sizeof(plans[0]));

    if (!plans) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "out of memory for a queue of %zu plans", capacity);
    }
    *queue = (struct plan_queue){.plans = plans, .capacity = capacity};
    return 0;
}

void plan_queue_deinit(struct plan_queue *queue)
{
    struct skrull_plan *plan;

    while ((plan = plan_queue_pop(queue))) {
        skrull_plan_free(plan);
    }
    free(queue->plans);
    queue->plans = NULL;
}

bool plan_queue_is_full(const struct plan_queue *queue)
{
    return queue->n_plans == queue->capacity;
}

void plan_queue_push(struct plan_queue *queue, struct skrull_plan *plan)
{
    assert(!plan_queue_is_full(queue));
    queue->plans[(queue->first + queue->n_plans) % queue->capacity] = plan;
    queue->n_plans++;
}

struct skrull_plan *plan_queue_pop(struct plan_queue *queue)
{
    struct skrull_plan *plan;

    if (queue->n_plans == 0) {
        return NULL;
    }
    plan = queue->plans[queue->first];
    queue->first = (queue->first + 1) % queue->capacity;
    queue->n_plans--;
    return plan;
}

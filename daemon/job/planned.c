/* Made on any thread, counted on the loop's. */
#include "job/planned.h"

#include <stdlib.h>

#include "arena.h"
#include "codec_rpc.h"
#include "job/pipeline.h"
#include "job/shared_bytes.h"

struct planned *planned_ref(struct planned *planned)
{
    planned->n_refs++;
    return planned;
}

static void planned_free(struct planned *planned)
{
    if (!planned) {
        return;
    }
    for (size_t i = 0; i < planned->n_messages; i++) {
        shared_bytes_unref(planned->messages[i]);
    }
    free(planned->messages);
    skrull_plan_free(planned->plan);
    free(planned);
}

void planned_unref(struct planned *planned)
{
    if (planned && --planned->n_refs == 0) {
        planned_free(planned);
    }
}

static int encode(struct planned *planned, struct skrull_error *err)
{
    const struct skrull_plan *plan = planned->plan;

    planned->n_bytes = arena_used(plan->arena);
    planned->messages = calloc(plan->n_ranks > 0 ? plan->n_ranks : 1, sizeof(*planned->messages));
    if (!planned->messages) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    for (size_t i = 0; i < plan->n_ranks; i++) {
        uint8_t *bytes;
        size_t len;
        int code = codec_stream_plan_pack(plan, i, &bytes, &len, err);

        if (code < 0) {
            return code;
        }
        planned->messages[i] = shared_bytes_new(bytes, len);
        if (!planned->messages[i]) {
            free(bytes);
            return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
        }
        planned->n_messages++;
        planned->n_bytes += len;
    }
    return 0;
}

int planned_make(const struct pipeline_source *source, uint64_t step, struct planned **ret_planned,
                 struct skrull_error *err)
{
    struct planned *planned = calloc(1, sizeof(*planned));
    int code;

    if (!planned) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED, "out of memory");
    }
    planned->n_refs = 1;
    code = source->plan(source->arg, step, &planned->plan, err);
    if (code == 0) {
        code = encode(planned, err);
    }
    if (code < 0) {
        planned_free(planned);
        return code;
    }
    *ret_planned = planned;
    return 0;
}

/* A step's plan on its way out: once as a plan, once as a message for each data rank. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/plan.h>

struct pipeline_source;
struct shared_bytes;

/* A step's plan, immutable; reference-counted on this thread. */
struct planned {
    size_t n_refs;
    struct skrull_plan *plan;
    struct shared_bytes **messages; /* [plan->n_ranks]: a StreamPlansResponse each, by data rank */
    size_t n_messages;
    size_t n_bytes;
};

struct planned *planned_ref(struct planned *planned);
void planned_unref(struct planned *planned);

/* Plans a step and encodes it, with one reference. On any thread; errors are the source's. */
int planned_make(const struct pipeline_source *source, uint64_t step, struct planned **ret_planned,
                 struct skrull_error *err);

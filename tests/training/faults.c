/*
 * Faults are planted from outside: the layout that a step was given is altered just before it is
 * run, or the exchange loses what it should bring. The code under test has no switch for them.
 */
#include "faults.h"

#include <pthread.h>
#include <string.h>

#include "comm.h"

/* Layouts are const to those who read them; here one is spoilt. */
#define SPOIL(type, pointer) ((type *)(uintptr_t)(pointer))

/* Begins as the decoder does. */
static int begin_as_usual(void *arg, struct skrull_exec *exec, const struct skrull_layout *layout,
                          struct skrull_error *err)
{
    const struct skrull_trainer trainer = decoder_trainer(arg);

    return trainer.begin(arg, exec, layout, err);
}

/* Of one sequence a step, the first that is met, by all of its ranks. */
static int begin_doubled_weight(void *arg, struct skrull_exec *exec,
                                const struct skrull_layout *layout, struct skrull_error *err)
{
    for (uint32_t i = 0; i < layout->n_ranges; i++) {
        const struct skrull_range *range = &layout->ranges[i];

        for (uint32_t t = 0;
             t < range->n_rows && layout->sequences[range->i_sequence].sample % 8 == 0; t++) {
            SPOIL(float, layout->loss_weight)[range->first_row + t] *= 2.0F;
        }
    }
    return begin_as_usual(arg, exec, layout, err);
}

/* Member 1 of every group attends to nothing and counts for nothing. */
static int begin_dropped_shard(void *arg, struct skrull_exec *exec,
                               const struct skrull_layout *layout, struct skrull_error *err)
{
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        const struct skrull_layout_group *group = &layout->groups[g];
        const struct skrull_row_set *block = &group->blocks[group->member];

        for (uint32_t i = 0; i < block->n_rows && group->member == 1; i++) {
            SPOIL(float, layout->loss_weight)[group->first_row + i] = 0.0F;
        }
    }
    return begin_as_usual(arg, exec, layout, err);
}

/* The second half of each distributed shard is one position too far. */
static int begin_position_off(void *arg, struct skrull_exec *exec,
                              const struct skrull_layout *layout, struct skrull_error *err)
{
    for (uint32_t i = 0; i < layout->n_ranges; i++) {
        const struct skrull_range *range = &layout->ranges[i];

        for (uint32_t t = 0; t < range->n_tokens && range->token_begin > 0; t++) {
            SPOIL(int32_t, layout->rows.position)[range->first_row + t]++;
        }
    }
    return begin_as_usual(arg, exec, layout, err);
}

/* All keys of distributed sequences look like the first token: nothing is in the future. */
static int begin_unmasked_chunks(void *arg, struct skrull_exec *exec,
                                 const struct skrull_layout *layout, struct skrull_error *err)
{
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        const struct skrull_row_set *keys = &layout->groups[g].keys;

        for (uint32_t i = 0; i < keys->n_rows; i++) {
            if (keys->position[i] != SKRULL_NO_POSITION) {
                SPOIL(int32_t, keys->position)[i] = 0;
            }
        }
    }
    return begin_as_usual(arg, exec, layout, err);
}

/* Local documents attend to the one before them, as if they were one. */
static int begin_unmasked_documents(void *arg, struct skrull_exec *exec,
                                    const struct skrull_layout *layout, struct skrull_error *err)
{
    struct skrull_row_set *local = SPOIL(struct skrull_row_set, &layout->local);

    if (local->n_sequences > 1) {
        for (uint32_t i = 0; i < local->n_rows; i++) {
            SPOIL(int32_t, local->position)[i] = (int32_t)i;
        }
        SPOIL(int32_t, local->cu_rows)[1] = (int32_t)local->n_rows;
        local->max_rows = local->n_rows;
        local->n_sequences = 1;
    }
    return begin_as_usual(arg, exec, layout, err);
}

/* Padding behind a local sequence passes for its first token. */
static int begin_padding_seen(void *arg, struct skrull_exec *exec,
                              const struct skrull_layout *layout, struct skrull_error *err)
{
    const struct skrull_row_set *local = &layout->local;

    for (uint32_t i = 0; i < local->n_rows; i++) {
        if (local->position[i] == SKRULL_NO_POSITION) {
            SPOIL(int32_t, local->position)[i] = 0;
        }
    }
    return begin_as_usual(arg, exec, layout, err);
}

static void plant_doubled_weight(struct training *training)
{
    training->trainer.begin = begin_doubled_weight;
}

static void plant_dropped_shard(struct training *training)
{
    training->trainer.begin = begin_dropped_shard;
}

static void plant_position_off(struct training *training)
{
    training->trainer.begin = begin_position_off;
}

static void plant_unmasked_chunks(struct training *training)
{
    training->trainer.begin = begin_unmasked_chunks;
}

static void plant_unmasked_documents(struct training *training)
{
    training->trainer.begin = begin_unmasked_documents;
}

static void plant_padding_seen(struct training *training)
{
    training->trainer.begin = begin_padding_seen;
}

/* An exchange that loses the gradients of keys: that of threads, save for what it brings. */
static const struct comm_ops *whole_ops;
static pthread_once_t whole_ops_once = PTHREAD_ONCE_INIT;

static void find_whole_ops(void)
{
    struct skrull_comm *comm;

    if (skrull_comm_threads(1, 1, &comm, NULL) == 0) {
        whole_ops = comm->ops;
        skrull_comm_free(comm);
    }
}

static int lossy_wait(struct skrull_comm *comm, struct comm_transfer *transfers, size_t n,
                      struct skrull_error *err)
{
    int rc = whole_ops->wait(comm, transfers, n, err);

    for (size_t i = 0; i < n && rc == 0; i++) {
        if (!transfers[i].is_send && transfers[i].tag == COMM_KEY_GRADIENTS) {
            memset(transfers[i].to, 0, transfers[i].bytes);
        }
    }
    return rc;
}

static int lossy_begin(struct skrull_comm *comm, struct comm_transfer *transfer,
                       struct skrull_error *err)
{
    return whole_ops->begin(comm, transfer, err);
}

static void lossy_fail(struct skrull_comm *comm, const struct skrull_error *why)
{
    whole_ops->fail(comm, why);
}

static void lossy_free(struct skrull_comm *comm)
{
    whole_ops->free(comm);
}

static const struct comm_ops lossy_ops = {
    .name = "lossy",
    .begin = lossy_begin,
    .wait = lossy_wait,
    .fail = lossy_fail,
    .free = lossy_free,
};

static void plant_lost_gradients(struct training *training)
{
    (void)pthread_once(&whole_ops_once, find_whole_ops);
    training->comm->ops = &lossy_ops;
}

const struct fault faults[] = {
    {"a doubled loss weight", plant_doubled_weight},
    {"a dropped shard", plant_dropped_shard},
    {"a position off by one", plant_position_off},
    {"no mask between chunks", plant_unmasked_chunks},
    {"no mask between documents", plant_unmasked_documents},
    {"padding that is attended to", plant_padding_seen},
    {"a gradient that does not return", plant_lost_gradients},
    {NULL, NULL},
};

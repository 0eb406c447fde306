/*
 * Which steps each data rank has reported, as sorted ranges of steps: one range a rank in a run
 * that goes well, so ranks may report late, twice, or from a checkpoint far ahead. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

#include "store/store.h"

struct arena;
struct progress;

/* Ranges that a rank may have; each hole in its reports makes one more. */
#define PROGRESS_MAX_RANGES 1024

/* Nothing reported yet: a new table for `n_ranks` (at least 1) data ranks and steps [0, steps).
 * RESOURCE_EXHAUSTED: out of memory. */
int progress_new(uint32_t n_ranks, uint64_t steps, struct progress **ret_progress,
                 struct skrull_error *err);

/* NULL is fine. */
void progress_free(struct progress *progress);

/*
 * A rank has done a step. Returns 0: new; PROGRESS_REPEATED: known already, nothing changed.
 * INVALID_ARGUMENT: no such rank; OUT_OF_RANGE: no such step; RESOURCE_EXHAUSTED: too many holes,
 * or out of memory. O(log ranges + log ranks), save where a range is inserted.
 */
#define PROGRESS_REPEATED 1
int progress_report(struct progress *progress, uint32_t data_rank, uint64_t step,
                    struct skrull_error *err);

/* The smallest step that not every rank has reported; `steps` where all are done. Never falls.
 * O(1). */
uint64_t progress_next_step(const struct progress *progress);

/* The smallest step that this rank has not reported. */
uint64_t progress_rank_below(const struct progress *progress, uint32_t data_rank);

bool progress_is_reported(const struct progress *progress, uint32_t data_rank, uint64_t step);

/*
 * For stream windows: how many reports of this rank arrived since the table was made (restored ones
 * are none, repeated ones count), and the step that the latest of them named.
 */
uint64_t progress_n_reports(const struct progress *progress, uint32_t data_rank);
uint64_t progress_last_step(const struct progress *progress, uint32_t data_rank);

/* Is there anything that progress_take_dirty would give? */
bool progress_is_dirty(const struct progress *progress);

/*
 * Copies the state of every rank that changed since the last call into `arena`, for
 * store_put_progress; from then on they count as saved. Where saving fails, progress_mark_dirty
 * gives them back.
 */
int progress_take_dirty(struct progress *progress, struct arena *arena,
                        struct store_progress **ret_saved, size_t *ret_n, struct skrull_error *err);
void progress_mark_dirty(struct progress *progress, const struct store_progress *saved, size_t n);

/* Puts back what a store holds of one rank (a store_progress_fn's argument); not dirty afterwards.
 * DATA_LOSS: ranges out of order, no such rank, or beyond the job's steps. */
int progress_restore(struct progress *progress, const struct store_progress *saved,
                     struct skrull_error *err);

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

/* From `first_step` on, a step has so many data ranks. */
struct progress_span {
    uint64_t first_step;
    uint32_t n_ranks; /* at least 1 */
};

/* Nothing reported yet: a new table for steps [0, steps), whose data ranks are those of `spans`
 * ([n_spans >= 1] ascending, the first from step 0; copied). RESOURCE_EXHAUSTED: out of memory. */
int progress_new(const struct progress_span *spans, uint32_t n_spans, uint64_t steps,
                 struct progress **ret_progress, struct skrull_error *err);

/* What was reported to `old` is the new table's from now on; `old` is empty. The new one has the
 * ranks and steps of all that was reported. Cannot fail. O(ranks x spans). */
void progress_take(struct progress *progress, struct progress *old);

/* NULL is fine. */
void progress_free(struct progress *progress);

/*
 * A rank has done a step. Returns 0: new; PROGRESS_REPEATED: known already, nothing changed.
 * INVALID_ARGUMENT: the step has no such rank; OUT_OF_RANGE: no such step; RESOURCE_EXHAUSTED: too
 * many holes, or out of memory. O(log ranges + log ranks + spans), save where a range is inserted.
 */
#define PROGRESS_REPEATED 1
int progress_report(struct progress *progress, uint32_t data_rank, uint64_t step,
                    struct skrull_error *err);

/* The smallest step that not every data rank of it has reported; `steps` where all are done. Never
 * falls, also not by progress_take where new spans begin at progress_end or later. O(1). */
uint64_t progress_next_step(const struct progress *progress);

/* One past the largest step that any rank has reported. */
uint64_t progress_end(const struct progress *progress);

/* The smallest step with this rank that it has not reported; `steps` where there is none. */
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

/*
 * The daemon's one event loop, over libuv. All state of the daemon lives on the loop's thread:
 * every callback named here runs there, unless it says otherwise. Work that takes long goes to the
 * pool (`loop_work`), what must happen in order to a queue with a thread of its own (serial.h).
 */
#pragma once

#include <stdint.h>

#include <skrull/error.h>

struct loop;
struct uv_loop_s;

typedef void (*loop_fn)(void *arg);

/* Cores that this process may use. */
uint32_t loop_cores(void);

/* A new loop whose pool has `n_threads` threads. The size counts for the whole
 * process, from the first work on. */
int loop_new(uint32_t n_threads, struct loop **ret_loop, struct skrull_error *err);

/* Runs until loop_stop. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Lets work that is under way finish (its `done` runs), closes and frees. All timers, signals and
 * tasks must have been freed. NULL is fine. */
void loop_free(struct loop *loop);

/* Milliseconds on a clock of the loop's own, as of the current turn. */
uint64_t loop_now_ms(const struct loop *loop);

/* libuv's loop, for handles that this folder has no word for. */
struct uv_loop_s *loop_uv(struct loop *loop);

/* Runs work(arg) on a thread of the pool, then done(arg) on the loop's thread. RESOURCE_EXHAUSTED:
 * out of memory, and neither is called. */
int loop_work(struct loop *loop, loop_fn work, loop_fn done, void *arg);

/* A timer: calls fn(arg) after `after_ms`, and then every `repeat_ms` (0: once). */
struct loop_timer;
int loop_timer_new(struct loop *loop, loop_fn fn, void *arg, struct loop_timer **ret_timer,
                   struct skrull_error *err);
void loop_timer_start(struct loop_timer *timer, uint64_t after_ms, uint64_t repeat_ms);
void loop_timer_stop(struct loop_timer *timer);
void loop_timer_free(struct loop_timer *timer);

/* Calls fn(arg) whenever the process gets signal `number`. */
struct loop_signal;
int loop_signal_new(struct loop *loop, int number, loop_fn fn, void *arg,
                    struct loop_signal **ret_signal, struct skrull_error *err);
void loop_signal_free(struct loop_signal *handler);

/* A piece of work for the loop's own thread that is done in slices: once scheduled, fn(arg) runs in
 * the next turn of the loop, after other events had theirs; it may schedule itself again. */
struct loop_task;
int loop_task_new(struct loop *loop, loop_fn fn, void *arg, struct loop_task **ret_task,
                  struct skrull_error *err);
void loop_task_schedule(struct loop_task *task);
void loop_task_free(struct loop_task *task);

/* Sets `err` from a libuv code: "what: why". */
int loop_error(struct skrull_error *err, int uv_code, const char *what);

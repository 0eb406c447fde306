/*
 * Whether the daemon can still be reached: it calls its own health service, each time by a new
 * connection. Loop thread only.
 *
 * gRPC's listener stops accepting for good once a single accept failed for want of descriptors,
 * also where there are plenty again; connections then open and get no answer. Nothing inside the
 * process shows it, and only a new process helps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

struct cq;
struct loop;
struct self_check;

struct self_check_options {
    struct loop *loop;
    struct cq *cq; /* borrowed: outlives the check */
    const char *const
        *targets; /* [n_targets] a listener's address each, as gRPC takes it; copied */
    size_t n_targets;
    uint64_t period_ms, answer_ms;
    void (*deaf)(void *arg); /* a listener that answered before has not for some time; once */
    void *arg;
};

/* Starts checking, at once and then every period. */
int self_check_new(const struct self_check_options *options, struct self_check **ret_check,
                   struct skrull_error *err);

/* Are the listeners, gRPC's threads and the loop alive, as far as one knows? For the watchdog. */
bool self_check_is_well(const struct self_check *check);

/* Begins no more calls and cancels those under way; before the drain. */
void self_check_stop(struct self_check *check);

/* No call may be under way: after cq_free, or before anything was started. NULL is fine. */
void self_check_free(struct self_check *check);

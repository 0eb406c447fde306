/* The command line of skrull-worker. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_DATA_ROOTS 64

#define MAX_TOKEN_FILES 64

enum worker_backend { WORKER_BACKEND_NONE, WORKER_BACKEND_CPU, WORKER_BACKEND_CUDA };

/* How data ranks exchange, or with cuda how they find each other, to exchange by NCCL. DEFAULT: by
 * MPI under mpirun or with several ranks, by TCP where another launcher names ranks, else not. */
enum worker_comm {
    WORKER_COMM_DEFAULT,
    WORKER_COMM_NONE,
    WORKER_COMM_THREADS,
    WORKER_COMM_MPI,
    WORKER_COMM_TCP
};

/* What the job decides unless the command line does. */
enum worker_choice { WORKER_BY_JOB, WORKER_NO, WORKER_YES };

/* With a backend that trains. */
struct training_words {
    const char *model; /* as model_config_read takes it */
    enum worker_comm comm;
    bool is_ring;
    enum worker_choice is_sharded, recompute;
    const char *tokens[MAX_TOKEN_FILES];
    size_t n_tokens;
    bool is_unscheduled;
    const char *save_weights; /* NULL: not */
    uint64_t timeout_ms;
};

struct worker_options {
    const char *server; /* NULL: the default */
    const char *job;
    uint32_t data_rank;
    uint64_t from_step, count; /* count 0: all */
    uint32_t window;           /* 0: the library's */
    uint64_t pause_ms;         /* in place of computing */
    uint64_t give_up_ms;       /* without a connection; 0: never */
    uint64_t silence_ms;       /* on a connection; 0: never */
    bool is_local;             /* fallback */
    const char *data_roots[MAX_DATA_ROOTS];
    size_t n_data_roots;
    uint64_t fallback_after_ms; /* 0: the library's */
    enum worker_backend backend;
    struct training_words training;
};

enum options_outcome { OPTIONS_RUN, OPTIONS_SAID, OPTIONS_WRONG };

/* Reads the words after the program's name and, for the rank, the environment. OPTIONS_SAID: help
 * or version was printed. OPTIONS_WRONG: what is wrong was said on standard error. */
enum options_outcome options_read(int n_words, char *const *words, struct worker_options *ret);

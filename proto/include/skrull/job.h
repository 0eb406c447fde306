/*
 * A job in C words: what the job file, the RPC and the store all say. Every string is NULL or
 * NUL-terminated and owned by whoever owns the job (the arena it was decoded into).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <skrull/error.h>
#include <skrull/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a job remembers of an index, to notice another one. */
struct skrull_index_info {
    uint64_t count;        /* rows */
    uint64_t tokens;       /* sum of the lengths */
    uint64_t payload_hash; /* XXH3-64, as if the index were .skx */
};

struct skrull_dataset {
    const char *index;  /* path: absolute, or relative to a data root */
    const char *format; /* "auto" or a name of formats.def */
    enum skrull_over_length over_length;
    double weight; /* 0: none */
    const char *column; /* NULL: the format's own */
    enum skrull_unit unit;
};

/* Where a revision begins, and how large its batches are. */
struct skrull_revision_info {
    uint32_t revision; /* from 1 */
    uint64_t first_step;
    uint32_t global; /* sequences in a global batch */
};

/* Output only: found at creation, kept in the job. */
struct skrull_job_info {
    uint64_t sequences; /* in an epoch */
    uint64_t tokens;    /* of these, after truncation */
    uint64_t dropped;
    uint64_t truncated;
    uint64_t steps; /* of the whole job */
    uint64_t bucket_tokens;
    uint64_t longest;                  /* tokens */
    uint32_t n_indexes;                /* 0, or the job's n_data */
    struct skrull_index_info *indexes; /* [n_indexes] */
    uint64_t limit; /* tokens of the longest sequence that fitted at creation; longer ones were cut or dropped */
    uint32_t n_revisions;                   /* 0: there is one only; else the job's revision is the last */
    struct skrull_revision_info *revisions; /* [n_revisions] ascending */
};

/* Members have the names of the job file; job_fields.c is the table that binds both. */
struct skrull_job {
    const char *name;
    struct {
        const char *preset;
        const char *config; /* content of a config.json */
        enum skrull_flops flops;
    } model;
    struct {
        enum skrull_zero_stage zero_stage;
        enum skrull_recompute recompute;
        uint32_t lora_rank;
    } training;
    struct {
        const char *profile;
    } hardware;
    struct {
        uint32_t dp, cp, tp, pp;
        enum skrull_cp_mode cp_mode;
        uint32_t min_degree, max_degree, ranks_per_node; /* max_degree, ranks_per_node: 0 is no limit */
        const char *order;
    } parallel;
    struct {
        uint32_t global;        /* sequences */
        uint32_t bucket_tokens; /* padded tokens of a rank's micro-batch */
        uint32_t align;         /* tokens */
        enum skrull_shard shard;
        enum skrull_equal equal_micro_batches;
        uint32_t micro_batch_multiple, micro_batch_min, micro_batches;
        enum skrull_micro_batch_order micro_batch_order;
        enum skrull_mix mix;
    } batch;
    uint32_t n_data;
    struct skrull_dataset *data; /* [n_data] */
    uint64_t seed;
    enum skrull_order order;
    uint64_t epochs, steps; /* one of them is 0 in a completed job */
    enum skrull_last_batch last_batch;
    enum skrull_loss loss;
    const char *effort;
    const char *policy;
    /* Output only. */
    const char *uid; /* 32 hex digits, or NULL */
    uint32_t revision;
    struct skrull_job_info info;
};

#ifdef __cplusplus
}
#endif

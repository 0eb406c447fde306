/* What a store implements: the functions of store.h, whose comments hold here. */
#pragma once

#include "store/store.h"

struct store_ops {
    /* `place` is the URL after "scheme:". */
    int (*make_folder)(const char *place, struct skrull_error *err);
    int (*open)(const char *place, struct store **ret_store, struct skrull_error *err);
    void (*close)(struct store *store);
    int (*put_job)(struct store *store, const struct store_job *job, struct skrull_error *err);
    int (*put_revision)(struct store *store, const char *uid, const struct store_revision *revision,
                        struct skrull_error *err);
    int (*delete_job)(struct store *store, const char *name, struct skrull_error *err);
    int (*give_out)(struct store *store, const char *uid, uint64_t below, struct skrull_error *err);
    int (*put_progress)(struct store *store, const char *uid, const struct store_progress *progress,
                        size_t n, struct skrull_error *err);
    int (*each_job)(struct store *store, store_job_fn fn, void *arg, struct skrull_error *err);
    int (*each_revision)(struct store *store, const char *uid, store_revision_fn fn, void *arg,
                         struct skrull_error *err);
    int (*each_progress)(struct store *store, const char *uid, store_progress_fn fn, void *arg,
                         struct skrull_error *err);
};

/* Embedded first in each store's own struct. */
struct store {
    const struct store_ops *ops;
};

#define STORE(scheme) extern const struct store_ops store_##scheme##_ops;
#define LATER(scheme)
#include "store/stores.def"
#undef STORE
#undef LATER

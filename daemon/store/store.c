/*
 * Finds the store of a state URL by its scheme, and checks what every store would have to check:
 * numbers fit 63 bits, texts are there. The table of schemes is stores.def.
 */
#include "store/store.h"

#include <inttypes.h>
#include <string.h>

#include "store/store_ops.h"

/* NULL: not built yet. */
static const struct {
    const char *scheme;
    const struct store_ops *ops;
} stores[] = {
#define STORE(scheme) {#scheme, &store_##scheme##_ops},
#define LATER(scheme) {#scheme, NULL},
#include "store/stores.def"
#undef STORE
#undef LATER
};

static int find_ops(const char *url, const struct store_ops **ret_ops, const char **ret_place,
                    struct skrull_error *err)
{
    const char *colon = strchr(url, ':');
    size_t len = colon ? (size_t)(colon - url) : 0, i;

    for (i = 0; i < sizeof(stores) / sizeof(*stores); i++) {
        if (strlen(stores[i].scheme) != len || strncmp(url, stores[i].scheme, len) != 0) {
            continue;
        }
        if (!stores[i].ops) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                    "state: %.200s is not built yet: use sqlite:PATH", url);
        }
        *ret_ops = stores[i].ops;
        *ret_place = colon + 1;
        return 0;
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "state: %.200s names no kind of store: use sqlite:PATH", url);
}

int store_make_folder(const char *url, struct skrull_error *err)
{
    const struct store_ops *ops;
    const char *place = NULL;
    int result = find_ops(url, &ops, &place, err);

    return result ? result : ops->make_folder(place, err);
}

int store_open(const char *url, struct store **ret_store, struct skrull_error *err)
{
    const struct store_ops *ops;
    const char *place = NULL;
    int result = find_ops(url, &ops, &place, err);

    return result ? result : ops->open(place, ret_store, err);
}

void store_close(struct store *store)
{
    if (store) {
        store->ops->close(store);
    }
}

/* Steps are below 2^63, so that every store can hold them as signed numbers. */
static int check_number(const char *what, uint64_t number, struct skrull_error *err)
{
    return number <= INT64_MAX ? 0
                               : skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                                  "%s: %" PRIu64 " is past 2^63 - 1", what, number);
}

int store_put_job(struct store *store, const struct store_job *job, struct skrull_error *err)
{
    int result = check_number("given_out_below", job->given_out_below, err);

    return result ? result : store->ops->put_job(store, job, err);
}

int store_put_revision(struct store *store, const char *uid, const struct store_revision *revision,
                       struct skrull_error *err)
{
    int result = check_number("first_step", revision->first_step, err);

    return result ? result : store->ops->put_revision(store, uid, revision, err);
}

int store_delete_job(struct store *store, const char *name, struct skrull_error *err)
{
    return store->ops->delete_job(store, name, err);
}

int store_give_out(struct store *store, const char *uid, uint64_t below, struct skrull_error *err)
{
    int result = check_number("given_out_below", below, err);

    return result ? result : store->ops->give_out(store, uid, below, err);
}

int store_put_progress(struct store *store, const char *uid, const struct store_progress *progress,
                       size_t n, struct skrull_error *err)
{
    return store->ops->put_progress(store, uid, progress, n, err);
}

int store_each_job(struct store *store, store_job_fn fn, void *arg, struct skrull_error *err)
{
    return store->ops->each_job(store, fn, arg, err);
}

int store_each_revision(struct store *store, const char *uid, store_revision_fn fn, void *arg,
                        struct skrull_error *err)
{
    return store->ops->each_revision(store, uid, fn, arg, err);
}

int store_each_progress(struct store *store, const char *uid, store_progress_fn fn, void *arg,
                        struct skrull_error *err)
{
    return store->ops->each_progress(store, uid, fn, arg, err);
}

/* Temporary folders for the store's tests. */
#include "unit/store/state_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/store.h"

int state_folder_setup(void **state)
{
    struct state_folder *folder = calloc(1, sizeof(*folder));

    if (!folder) {
        return -1;
    }
    (void)snprintf(folder->path, sizeof(folder->path), "/tmp/skrull-store-XXXXXX");
    if (!mkdtemp(folder->path)) {
        free(folder);
        return -1;
    }
    (void)snprintf(folder->file, sizeof(folder->file), "%s/state.db", folder->path);
    (void)snprintf(folder->url, sizeof(folder->url), "sqlite:%s", folder->file);
    *state = folder;
    return 0;
}

int state_folder_teardown(void **state)
{
    struct state_folder *folder = *state;
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf -- '%s'", folder->path);
    free(folder);
    return system(command);
}

struct store *state_folder_open(const struct state_folder *folder)
{
    struct skrull_error err = {0};
    struct store *store = NULL;

    if (store_open(folder->url, &store, &err)) {
        fail_msg("%s", err.message);
    }
    return store;
}

void state_folder_uid(char tag, char ret_uid[33])
{
    memset(ret_uid, tag, 32);
    ret_uid[32] = '\0';
}

void state_folder_put_job(struct store *store, const char *name, char tag, size_t spec_len)
{
    struct skrull_error err = {0};
    uint8_t *spec = malloc(spec_len + 1);
    struct store_job job = {.name = name, .request_id = "", .spec = spec, .spec_len = spec_len};
    char uid[33];

    assert_non_null(spec);
    memset(spec, tag, spec_len + 1);
    state_folder_uid(tag, uid);
    job.uid = uid;
    if (store_put_job(store, &job, &err)) {
        fail_msg("%s", err.message);
    }
    free(spec);
}

uint8_t *state_folder_read(const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(1 << 22);

    assert_non_null(file);
    assert_non_null(bytes);
    *ret_len = fread(bytes, 1, 1 << 22, file);
    (void)fclose(file);
    return bytes;
}

void state_folder_write(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

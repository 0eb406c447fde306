/* A temporary folder of a test, with a state in it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct store;

struct state_folder {
    char path[64];
    char file[96]; /* path/state.db, not there yet */
    char url[128]; /* sqlite:file */
};

/* CMocka's setup and teardown: *state is the folder. */
int state_folder_setup(void **state);
int state_folder_teardown(void **state);

/* Opens the state; fails the test where that fails. */
struct store *state_folder_open(const struct state_folder *folder);

/* Adds a job whose uid is made of `tag` and whose spec is `spec_len` bytes of it. */
void state_folder_put_job(struct store *store, const char *name, char tag, size_t spec_len);

/* The uid of that job: 32 times `tag`. */
void state_folder_uid(char tag, char ret_uid[33]);

/* The whole file; malloc'd. */
uint8_t *state_folder_read(const char *path, size_t *ret_len);
void state_folder_write(const char *path, const void *bytes, size_t len);

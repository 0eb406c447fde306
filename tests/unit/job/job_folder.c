/* Folders and jobs for the job stage's tests. */
#include "unit/job/job_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "job_fields.h"

int job_folder_setup(void **state)
{
    struct job_folder *folder = calloc(1, sizeof(*folder));

    if (!folder) {
        return -1;
    }
    (void)snprintf(folder->path, sizeof(folder->path), "/tmp/skrull-job-XXXXXX");
    if (!mkdtemp(folder->path)) {
        free(folder);
        return -1;
    }
    folder->root = folder->path;
    folder->roots = (struct job_roots){&folder->root, 1};
    folder->data[0].index = "a.txt";
    folder->spec = (struct skrull_job){
        .name = "job",
        .model = {.preset = "qwen2.5-0.5b"},
        .parallel = {.dp = 2, .cp = 4},
        .batch = {.global = 8, .bucket_tokens = 1000},
        .n_data = 1,
        .data = folder->data,
        .uid = "0123456789abcdef0123456789abcdef",
        .revision = 1,
    };
    *state = folder;
    return 0;
}

int job_folder_teardown(void **state)
{
    struct job_folder *folder = *state;
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf -- '%s'", folder->path);
    free(folder);
    return system(command);
}

void job_folder_write(const struct job_folder *folder, const char *name, const uint32_t (*pairs)[2])
{
    char path[128];
    FILE *file;
    uint32_t i;

    (void)snprintf(path, sizeof(path), "%s/%s", folder->path, name);
    file = fopen(path, "w");
    assert_non_null(file);
    for (; (*pairs)[0]; pairs++) {
        for (i = 0; i < (*pairs)[0]; i++) {
            assert_true(fprintf(file, "%u\n", (*pairs)[1]) > 0);
        }
    }
    assert_int_equal(fclose(file), 0);
}

const struct skrull_job *job_folder_spec(struct job_folder *folder)
{
    struct skrull_error err = {0};

    if (job_complete(&folder->spec, &err)) {
        fail_msg("%s", err.message);
    }
    return &folder->spec;
}

struct job *job_folder_open(struct job_folder *folder)
{
    struct skrull_error err = {0};
    struct job *job = NULL;

    if (job_open(job_folder_spec(folder), &folder->roots, &job, &err)) {
        fail_msg("%s", err.message);
    }
    return job;
}

void job_folder_expect_refused(struct job_folder *folder, int code, const char *says)
{
    struct skrull_error err = {0};
    struct job *job = NULL;
    int result = job_open(job_folder_spec(folder), &folder->roots, &job, &err);

    if (result != code || !strstr(err.message, says)) {
        fail_msg("expected '%s', got %d: %s", says, result, err.message);
    }
    assert_null(job);
}

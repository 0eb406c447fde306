/*
 * Bytes as a job file. What parses is complete: as a message and back it is the same job, and its
 * planner options can be judged; what does not says why.
 */
#include <string.h>

#include <skrull/planner.h>

#include "arena.h"
#include "codec_job.h"
#include "fuzz/fuzz.h"
#include "job/job.h"
#include "job_file.h"

#define BUDGET_BYTES ((size_t)16 << 20)

static void check_round_trip(struct arena *arena, const struct skrull_job *job)
{
    struct skrull_job *copy = NULL;
    uint8_t *bytes = NULL, *again = NULL;
    size_t len = 0, len_again = 0;
    struct skrull_error err = {0};

    fuzz_check(codec_job_pack(arena, job, &bytes, &len, &err) == 0, "a job can be packed");
    fuzz_check(codec_job_unpack(arena, bytes, len, &copy, &err) == 0, "and unpacked");
    fuzz_check(codec_job_pack(arena, copy, &again, &len_again, &err) == 0, "and packed again");
    fuzz_check(len == len_again && memcmp(bytes, again, len) == 0, "to the same bytes");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new(BUDGET_BYTES);
    struct skrull_planner_options options;
    struct skrull_error err = {0};
    struct skrull_job *job = NULL;
    int rc = job_file_parse(arena, (const char *)data, size, &job, &err);

    fuzz_check(rc <= 0 && (rc == 0) == (job != NULL), "there is a job, or an error");
    fuzz_check((rc == 0) == (err.message[0] == 0), "an error has a message");
    if (job) {
        check_round_trip(arena, job);
        job_planner_options(job, &options);
        rc = skrull_planner_check_options(&options, &err);
        fuzz_check(rc == 0 || rc == SKRULL_ERR_INVALID_ARGUMENT, "options are right or wrong");
    }
    arena_free(arena);
    return 0;
}

/*
 * Errors. A function that can fail returns int: 0; a negative `enum skrull_err`, to be forwarded
 * unchanged; or a positive outcome that its comment names, never forwarded. The last parameter,
 * where there is one, takes the message: it may be NULL.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SKRULL_API __attribute__((visibility("default")))
#define SKRULL_PRINTF(string, first) __attribute__((format(printf, string, first)))
#else
#define SKRULL_API
#define SKRULL_PRINTF(string, first)
#endif

/* The negated canonical gRPC status codes. */
enum skrull_err {
    SKRULL_ERR_CANCELLED = -1,
    SKRULL_ERR_UNKNOWN = -2,
    SKRULL_ERR_INVALID_ARGUMENT = -3,
    SKRULL_ERR_DEADLINE_EXCEEDED = -4,
    SKRULL_ERR_NOT_FOUND = -5,
    SKRULL_ERR_ALREADY_EXISTS = -6,
    SKRULL_ERR_PERMISSION_DENIED = -7,
    SKRULL_ERR_RESOURCE_EXHAUSTED = -8,
    SKRULL_ERR_FAILED_PRECONDITION = -9,
    SKRULL_ERR_ABORTED = -10,
    SKRULL_ERR_OUT_OF_RANGE = -11,
    SKRULL_ERR_UNIMPLEMENTED = -12,
    SKRULL_ERR_INTERNAL = -13,
    SKRULL_ERR_UNAVAILABLE = -14,
    SKRULL_ERR_DATA_LOSS = -15,
    SKRULL_ERR_UNAUTHENTICATED = -16,
};

/* The cause, for programs; reason.def says when, skrull_reason_text gives the word that travels in
 * google.rpc.ErrorInfo. New ones come at the end. */
enum skrull_reason {
    SKRULL_REASON_NONE, /* nothing but the code */
    SKRULL_REASON_JOB_NOT_FOUND,
    SKRULL_REASON_JOB_EXISTS,
    SKRULL_REASON_JOB_DELETED,
    SKRULL_REASON_JOB_BROKEN,
    SKRULL_REASON_TOO_MANY_JOBS,
    SKRULL_REASON_UID_MISMATCH,
    SKRULL_REASON_REQUEST_ID_REUSED,
    SKRULL_REASON_PAGE_TOKEN_INVALID,
    SKRULL_REASON_FIELD_INVALID,
    SKRULL_REASON_STEP_OUT_OF_RANGE,
    SKRULL_REASON_DATA_RANK_OUT_OF_RANGE,
    SKRULL_REASON_DIGEST_MISMATCH,
    SKRULL_REASON_RESUME_DIGEST_MISMATCH,
    SKRULL_REASON_REVISION_STALE,
    SKRULL_REASON_STEP_GIVEN_OUT,
    SKRULL_REASON_INDEX_NOT_FOUND,
    SKRULL_REASON_INDEX_OUTSIDE_ROOTS,
    SKRULL_REASON_INDEX_INVALID,
    SKRULL_REASON_INDEX_CHANGED,
    SKRULL_REASON_OVER_LENGTH,
    SKRULL_REASON_TOO_FEW_SEQUENCES,
    SKRULL_REASON_POLICY_UNKNOWN,
    SKRULL_REASON_PLAN_TOO_LARGE,
    SKRULL_REASON_REQUEST_TOO_LARGE,
    SKRULL_REASON_METHOD_UNKNOWN,
    SKRULL_REASON_METHOD_UNBUILT,
    SKRULL_REASON_SERVICE_UNKNOWN,
    SKRULL_REASON_DRAINING,
    SKRULL_REASON_BUSY,
    SKRULL_N_REASONS
};

#define SKRULL_ERROR_MESSAGE_SIZE 512

/* A failure in words: names the thing, the limit and the remedy. Never allocates. */
struct skrull_error {
    int code; /* enum skrull_err, or 0 */
    char message[SKRULL_ERROR_MESSAGE_SIZE];
    enum skrull_reason reason;
    uint64_t limit; /* the bound that was crossed, where the reason has one (reason.def); else 0 */
};

/* Sets `err` (nullable) and returns `code`, so that a failing function can say
 * `return skrull_error_set(err, SKRULL_ERR_..., "...")`. Too long a message is cut. */
SKRULL_API int skrull_error_set(struct skrull_error *err, int code, const char *format, ...)
    SKRULL_PRINTF(3, 4);

/* The same with a reason and its bound. */
SKRULL_API int skrull_error_because(struct skrull_error *err, int code, enum skrull_reason reason,
                                    uint64_t limit, const char *format, ...) SKRULL_PRINTF(5, 6);

/* Puts "prefix: " before the message of `err` (nullable); returns `code`. */
SKRULL_API int skrull_error_prefix(struct skrull_error *err, int code, const char *format, ...)
    SKRULL_PRINTF(3, 4);

/* The code in words, "invalid argument"; static. Unknown codes are "unknown". */
SKRULL_API const char *skrull_error_text(int code);

/* The reason as a word, "JOB_NOT_FOUND"; static. "" for none and unknown ones. */
SKRULL_API const char *skrull_reason_text(enum skrull_reason reason);

#ifdef __cplusplus
}
#endif

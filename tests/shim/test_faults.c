/*
 * Each fault of faulty.cpp is caught in every order of threads, as this build can see it; sound
 * kernels pass. Each run is a process of its own, for most end it.
 */
#include "shim/faulty.h"

#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/shim.h"

enum { EXIT_RIGHT = 40, EXIT_WRONG, REPORT_BYTES = 65536 };

struct outcome {
    int status; /* of wait() */
    char report[REPORT_BYTES];
};

/* In a process of its own: argv[1] of faulty_kernels in order argv[2]. */
static int run_here(const struct faulty *faulty, int order)
{
    shim_set_order(order);
    return faulty->run() ? EXIT_WRONG : EXIT_RIGHT;
}

/* Keeps the start of what comes, reads the rest. */
static void read_report(int fd, char report[REPORT_BYTES])
{
    char rest[4096];
    size_t n = 0;
    ssize_t got;

    do {
        bool has_room = n < REPORT_BYTES - 1;

        got =
            read(fd, has_room ? report + n : rest, has_room ? REPORT_BYTES - 1 - n : sizeof(rest));
        n += has_room && got > 0 ? (size_t)got : 0;
    } while (got > 0);
    report[n] = '\0';
}

static void run_apart(size_t i, int order, struct outcome *ret_outcome)
{
    char program[] = "/proc/self/exe", i_text[24], order_text[16];
    char *args[] = {program, i_text, order_text, NULL};
    posix_spawn_file_actions_t actions;
    int fds[2];
    pid_t child;

    snprintf(i_text, sizeof(i_text), "%zu", i);
    snprintf(order_text, sizeof(order_text), "%d", order);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, fds[1], STDERR_FILENO), 0);
    assert_int_equal(posix_spawn(&child, program, &actions, NULL, args, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    read_report(fds[0], ret_outcome->report);
    close(fds[0]);
    assert_int_equal(waitpid(child, &ret_outcome->status, 0), child);
}

static int count(const char *text, const char *part)
{
    int n = 0;

    while ((text = strstr(text, part))) {
        n++;
        text += strlen(part);
    }
    return n;
}

static bool is_exit(const struct outcome *outcome, int code)
{
    return WIFEXITED(outcome->status) && WEXITSTATUS(outcome->status) == code;
}

static bool is_as_expected(const struct faulty *faulty, const char *expected,
                           const struct outcome *outcome)
{
    if (expected == NULL) {
        return is_exit(outcome, EXIT_RIGHT) && outcome->report[0] == '\0';
    }
    if (*expected == '\0') {
        return is_exit(outcome, EXIT_WRONG) && outcome->report[0] == '\0';
    }
    return strstr(outcome->report, expected) && !is_exit(outcome, EXIT_RIGHT) &&
           count(outcome->report, "faulty.cpp:") >= faulty->n_lines;
}

static enum faulty_build this_build(void)
{
    const char *said = getenv("SHIM_SANITIZER");

    if (said && strstr(said, "address")) {
        return FAULTY_ADDRESS;
    }
    return said && strstr(said, "thread") ? FAULTY_THREAD : FAULTY_PLAIN;
}

/* What a sanitizer adds nothing to is tried in one order under it: each run starts a program. */
static bool is_tried(size_t i, int order)
{
    const char *plain = faulty_kernels[i].reports[FAULTY_PLAIN];
    const char *expected = faulty_kernels[i].reports[this_build()];

    if (expected && *expected == '-') {
        return false;
    }
    return this_build() == FAULTY_PLAIN || order == (int)(i % 3) || !plain || !expected ||
           strcmp(plain, expected) != 0;
}

static void test_run__catches_each_fault_in_every_order(void **state)
{
    struct outcome *outcome = malloc(sizeof(*outcome));
    int n_missed = 0;

    (void)state;
    assert_non_null(outcome);
    for (size_t i = 0; i < n_faulty_kernels; i++) {
        const struct faulty *faulty = &faulty_kernels[i];
        const char *expected = faulty->reports[this_build()];

        for (int order = 0; order < 3; order++) {
            if (!is_tried(i, order)) {
                continue;
            }
            run_apart(i, order, outcome);
            if (!is_as_expected(faulty, expected, outcome)) {
                print_message("# %s, order %d: expected \"%s\", got status %#x and:\n%s\n",
                              faulty->name, order, expected ? expected : "nothing",
                              (unsigned)outcome->status, outcome->report);
                n_missed++;
            }
        }
    }
    free(outcome);
    assert_int_equal(n_missed, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run__catches_each_fault_in_every_order),
    };

    if (argc == 3) {
        return run_here(&faulty_kernels[strtoul(argv[1], NULL, 10)],
                        (int)strtol(argv[2], NULL, 10));
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Mapped files, and what is left of one that is truncated while it is read. */
#include "base/map.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE ((size_t)16384)

/* An unnamed file of SIZE bytes, all `byte`. */
static int filled_file(unsigned char byte)
{
    char path[] = "/tmp/skrull-map-XXXXXX";
    unsigned char bytes[4096];
    const int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = byte;
    }
    for (size_t at = 0; at < SIZE; at += sizeof(bytes)) {
        assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
    }
    return fd;
}

static unsigned int sum(const volatile unsigned char *bytes)
{
    unsigned int total = 0;

    for (size_t i = 0; i < SIZE; i++) {
        total += bytes[i];
    }
    return total;
}

static void test_map_open__reads_the_file(void **state)
{
    const int fd = filled_file(3);
    const void *bytes;

    (void)state;
    assert_int_equal(map_open(fd, "file", SIZE, &bytes, NULL), 0);
    assert_int_equal(sum(bytes), 3 * SIZE);
    assert_true(map_is_whole(bytes));
    map_close(bytes, SIZE);
    (void)close(fd);
}

static void test_map_guard__lost_pages_read_as_zeros(void **state)
{
    const int fd = filled_file(5), other_fd = filled_file(7);
    const void *bytes, *other;

    (void)state;
    map_guard_install();
    assert_int_equal(map_open(fd, "file", SIZE, &bytes, NULL), 0);
    assert_int_equal(map_open(other_fd, "other", SIZE, &other, NULL), 0);

    assert_int_equal(ftruncate(fd, 4096), 0);

    assert_int_equal(sum(bytes), 5 * 4096);
    assert_false(map_is_whole(bytes));
    assert_int_equal(sum(other), 7 * SIZE);
    assert_true(map_is_whole(other));
    map_close(bytes, SIZE);
    map_close(other, SIZE);
    (void)close(fd);
    (void)close(other_fd);
}

static void test_map_guard__slot_is_whole_again_after_reuse(void **state)
{
    const int fd = filled_file(5), other_fd = filled_file(7);
    const void *bytes;

    (void)state;
    map_guard_install();
    assert_int_equal(map_open(fd, "file", SIZE, &bytes, NULL), 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(sum(bytes), 0);
    map_close(bytes, SIZE);

    assert_int_equal(map_open(other_fd, "other", SIZE, &bytes, NULL), 0);
    assert_true(map_is_whole(bytes));
    map_close(bytes, SIZE);
    (void)close(fd);
    (void)close(other_fd);
}

/* In a child, as it must die. */
static void test_map_guard__other_faults_stay_fatal(void **state)
{
    const int fd = filled_file(5);
    pid_t child;
    int status;

    (void)state;
    child = fork();
    if (child == 0) {
        const unsigned char *foreign;

        (void)signal(SIGBUS, SIG_DFL); /* not the sanitizers' report */
        map_guard_install();
        map_guard_install(); /* must not take itself for who was there before */
        foreign = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
        if (ftruncate(fd, 0) == 0) {
            (void)sum(foreign);
        }
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
    (void)close(fd);
}

static void test_map_open__says_when_there_are_too_many(void **state)
{
    const int fd = filled_file(1);
    const void **all = malloc(MAP_MAX * sizeof(*all));
    struct skrull_error err = {0};
    const void *more;

    (void)state;
    assert_non_null(all);
    for (size_t i = 0; i < MAP_MAX; i++) {
        assert_int_equal(map_open(fd, "file", 1, &all[i], NULL), 0);
    }
    assert_int_equal(map_open(fd, "file", 1, &more, &err), SKRULL_ERR_RESOURCE_EXHAUSTED);
    map_close(all[7], 1);
    assert_int_equal(map_open(fd, "file", 1, &all[7], NULL), 0);
    for (size_t i = 0; i < MAP_MAX; i++) {
        map_close(all[i], 1);
    }
    free(all);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_open__reads_the_file),
        cmocka_unit_test(test_map_guard__lost_pages_read_as_zeros),
        cmocka_unit_test(test_map_guard__slot_is_whole_again_after_reuse),
        cmocka_unit_test(test_map_guard__other_faults_stay_fatal),
        cmocka_unit_test(test_map_open__says_when_there_are_too_many),
    };

    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}

/* Length lists for the benches. The shuffle is Fisher-Yates over splitmix64: the same everywhere.
 */
#include "bench/length_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *path, const char *why)
{
    fprintf(stderr, "%s: %s\n", path, why);
    exit(1);
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void shuffle(struct length_list *list, uint64_t seed)
{
    for (size_t i = list->n; i > 1; i--) {
        const size_t j = next_random(&seed) % i;
        const uint32_t swap = list->lengths[i - 1];

        list->lengths[i - 1] = list->lengths[j];
        list->lengths[j] = swap;
    }
}

struct length_list length_list_read(const char *path, uint64_t limit, uint64_t seed)
{
    struct length_list list = {0};
    size_t size = 0;
    char line[64];
    FILE *file = fopen(path, "r");

    if (!file) {
        fail(path, strerror(errno));
    }
    while (fgets(line, sizeof(line), file)) {
        const unsigned long length = strtoul(line, NULL, 10);

        if (length == 0 || length > limit) {
            continue;
        }
        if (list.n == size) {
            size = size ? size * 2 : 1024;
            list.lengths = reallocarray(list.lengths, size, sizeof(list.lengths[0]));
            if (!list.lengths) {
                fail(path, "out of memory");
            }
        }
        list.lengths[list.n++] = (uint32_t)length;
    }
    (void)fclose(file);
    if (list.n == 0) {
        fail(path, "no length within the limit");
    }
    if (seed > 0) {
        shuffle(&list, seed);
    }
    return list;
}

void length_list_free(struct length_list *list)
{
    free(list->lengths);
}

void length_list_batch(const struct length_list *list, uint64_t step, struct skrull_sequence *batch,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t sample = step * n + i, row = sample % list->n;
        const uint32_t length = list->lengths[row];

        batch[i] = (struct skrull_sequence){
            .sample = sample, .index = row, .length = length, .loss_tokens = length};
    }
}

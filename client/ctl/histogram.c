/* Bars of block characters. */
#include "histogram.h"

#include <string.h>

#define EIGHTHS 8

/* count x parts / most, rounded up, without passing 64 bits. */
static uint64_t share(uint64_t count, uint64_t most, uint64_t parts)
{
    while (most > UINT64_MAX / 2 / (parts ? parts : 1)) {
        most /= 2;
        count = count / 2 + (count % 2);
    }
    if (most == 0) {
        return 0;
    }
    count = count < most ? count : most;
    return (count * parts + most - 1) / most;
}

void histogram_bar(uint64_t count, uint64_t most, size_t width, bool is_utf8, char *ret_bar)
{
    static const char *const blocks[EIGHTHS] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    uint64_t eighths = share(count, most, (uint64_t)width * EIGHTHS);
    const char *full = is_utf8 ? "█" : "#";
    size_t n_full = is_utf8 ? (size_t)(eighths / EIGHTHS) : (size_t)share(count, most, width);
    char *end = ret_bar;

    for (size_t i = 0; i < n_full; i++) {
        memcpy(end, full, strlen(full));
        end += strlen(full);
    }
    if (is_utf8) {
        const char *block = blocks[eighths % EIGHTHS];

        memcpy(end, block, strlen(block));
        end += strlen(block);
    }
    *end = '\0';
}

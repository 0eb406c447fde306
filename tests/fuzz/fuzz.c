/* Reading inputs, and giving up. */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

void fuzz_check(bool holds, const char *words)
{
    if (!holds) {
        fprintf(stderr, "fuzz_check: %s\n", words);
        abort();
    }
}

static uint64_t take(struct fuzz_input *input, unsigned n)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < n && input->size > 0; i++) {
        number |= (uint64_t)*input->data << (8 * i);
        input->data++;
        input->size--;
    }
    return number;
}

uint8_t fuzz_u8(struct fuzz_input *input)
{
    return (uint8_t)take(input, 1);
}

uint16_t fuzz_u16(struct fuzz_input *input)
{
    return (uint16_t)take(input, 2);
}

uint32_t fuzz_u32(struct fuzz_input *input)
{
    return (uint32_t)take(input, 4);
}

uint64_t fuzz_u64(struct fuzz_input *input)
{
    return take(input, 8);
}

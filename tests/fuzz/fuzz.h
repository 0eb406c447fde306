/*
 * What fuzz targets share. A target is one file with LLVMFuzzerTestOneInput: libFuzzer drives it in
 * builds with -Dfuzz=true (run.sh), standalone.c runs files through it in all others. A finding is
 * a crash, a sanitizer's report, or fuzz_check.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts with the words: the target's own rule does not hold. */
void fuzz_check(bool holds, const char *words);

/* An input read as numbers: little-endian, 0 past its end. */
struct fuzz_input {
    const uint8_t *data;
    size_t size;
};

uint8_t fuzz_u8(struct fuzz_input *input);
uint16_t fuzz_u16(struct fuzz_input *input);
uint32_t fuzz_u32(struct fuzz_input *input);
uint64_t fuzz_u64(struct fuzz_input *input);

/*
 * Runs each file of the named folders, or the named files, through a fuzz target once.
 *
 * usage: fuzz_TARGET PATH...
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"

#define MAX_INPUT_BYTES ((size_t)1 << 24)

/* Exactly as large as the file, so that a sanitizer sees the first byte past it. */
static bool run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(MAX_INPUT_BYTES), *exact;
    size_t size;

    if (!file || !data) {
        perror(path);
        exit(1);
    }
    size = fread(data, 1, MAX_INPUT_BYTES, file);
    exact = realloc(data, size > 0 ? size : 1);
    if (ferror(file) || !exact) {
        perror(path);
        exit(1);
    }
    (void)fclose(file);
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return true;
}

static size_t run_folder(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    char name[4096];
    size_t n = 0;

    if (!folder) {
        perror(path);
        exit(1);
    }
    while ((entry = readdir(folder))) {
        if (entry->d_name[0] != '.') {
            (void)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
            n += run_file(name);
        }
    }
    (void)closedir(folder);
    return n;
}

int main(int argc, char **argv)
{
    struct stat about;
    size_t n = 0;

    for (int i = 1; i < argc; i++) {
        if (stat(argv[i], &about)) {
            perror(argv[i]);
            return 1;
        }
        n += S_ISDIR(about.st_mode) ? run_folder(argv[i]) : run_file(argv[i]);
    }
    printf("%zu inputs\n", n);
    return n > 0 ? 0 : 1; /* a corpus that was lost would pass for ever */
}

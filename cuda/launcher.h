/* Which rank this process is, of how many, and where data rank 0 listens, by the environment of
 * torchrun or Slurm. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/error.h>

struct launcher_place {
    uint32_t rank, size;
    char host[256];
    uint16_t port;
};

/* INVALID_ARGUMENT: a variable is missing or wrong. Reads the environment only. */
int launcher_find(struct launcher_place *ret, struct skrull_error *err);

/* The first name of a Slurm host list, "n[07-09,11],m2" -> "n07"; -1: none, or longer than `size`.
 */
int launcher_first_host(const char *list, char *ret_host, size_t size);

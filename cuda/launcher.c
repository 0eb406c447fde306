/*
 * The environments of launchers. torchrun (and what imitates it) sets RANK, WORLD_SIZE, MASTER_ADDR
 * and MASTER_PORT; where its agent itself listens at that port (TORCHELASTIC_USE_AGENT_STORE) the
 * next one is taken. Slurm sets SLURM_PROCID, SLURM_NTASKS and a list of hosts, on the first of
 * which task 0 runs; its port follows from the job's number. Reads only.
 */
#include "launcher.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLURM_FIRST_PORT 20000u
#define SLURM_PORTS 20000u

static bool parse(const char *text, uint32_t max, uint32_t *ret)
{
    char *end = NULL;
    unsigned long long value;

    if (!text || *text < '0' || *text > '9') {
        return false;
    }
    value = strtoull(text, &end, 10);
    if (*end != '\0' || value > max) {
        return false;
    }
    *ret = (uint32_t)value;
    return true;
}

static int wrong(const char *name, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s is %s%s%s", name,
                            getenv(name) ? "wrong: \"" : "not set",
                            getenv(name) ? getenv(name) : "", getenv(name) ? "\"" : "");
}

static int read_number(const char *name, uint32_t max, uint32_t *ret, struct skrull_error *err)
{
    return parse(getenv(name), max, ret) ? 0 : wrong(name, err);
}

/* 0 is no port to meet at: each who listens there gets another. */
static int read_port(const char *name, uint32_t *ret, struct skrull_error *err)
{
    int rc = read_number(name, UINT16_MAX, ret, err);

    return rc == 0 && *ret == 0 ? wrong(name, err) : rc;
}

static int copy_host(const char *name, size_t len, char *ret_host, size_t size)
{
    if (len == 0 || len >= size) {
        return -1;
    }
    memcpy(ret_host, name, len);
    ret_host[len] = '\0';
    return 0;
}

int launcher_first_host(const char *list, char *ret_host, size_t size)
{
    size_t prefix = strcspn(list, "[,"), number, after;
    const char *open = list + prefix, *close;

    if (*open != '[') {
        return copy_host(list, prefix, ret_host, size);
    }
    number = strcspn(open + 1, "-,]");
    close = strchr(open, ']');
    after = close ? strcspn(close + 1, "[,") : 0;
    if (!close || number == 0 || prefix + number + after >= size) {
        return -1;
    }
    memcpy(ret_host, list, prefix);
    memcpy(ret_host + prefix, open + 1, number);
    memcpy(ret_host + prefix + number, close + 1, after);
    ret_host[prefix + number + after] = '\0';
    return 0;
}

static int find_torchrun(struct launcher_place *place, uint32_t *port, struct skrull_error *err)
{
    const char *host = getenv("MASTER_ADDR"), *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
    int rc = read_number("RANK", UINT32_MAX, &place->rank, err);

    if (rc == 0) {
        rc = read_number("WORLD_SIZE", UINT32_MAX, &place->size, err);
    }
    if (rc == 0) {
        rc = read_port("MASTER_PORT", port, err);
    }
    if (rc == 0 && (!host || copy_host(host, strlen(host), place->host, sizeof(place->host)) < 0)) {
        rc = wrong("MASTER_ADDR", err);
    }
    *port += agent && strcmp(agent, "True") == 0 && *port < UINT16_MAX;
    return rc;
}

static int find_slurm(struct launcher_place *place, uint32_t *port, struct skrull_error *err)
{
    const char *name = getenv("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_NODELIST";
    const char *list = getenv(name);
    uint32_t job = 0;
    int rc = read_number("SLURM_PROCID", UINT32_MAX, &place->rank, err);

    if (rc == 0) {
        rc = read_number("SLURM_NTASKS", UINT32_MAX, &place->size, err);
    }
    if (rc == 0) {
        rc = read_number("SLURM_JOB_ID", UINT32_MAX, &job, err);
    }
    if (rc == 0 && (!list || launcher_first_host(list, place->host, sizeof(place->host)) < 0)) {
        rc = wrong(name, err);
    }
    *port = SLURM_FIRST_PORT + job % SLURM_PORTS;
    return rc;
}

int launcher_find(struct launcher_place *ret, struct skrull_error *err)
{
    struct launcher_place place = {0};
    uint32_t port = 0;
    int rc = getenv("RANK") || !getenv("SLURM_PROCID") ? find_torchrun(&place, &port, err)
                                                       : find_slurm(&place, &port, err);

    if (rc == 0 && getenv("SKRULL_PORT")) {
        rc = read_port("SKRULL_PORT", &port, err);
    }
    if (rc == 0 && (place.size == 0 || place.rank >= place.size)) {
        rc = skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                              "the launcher's environment says rank %" PRIu32 " of %" PRIu32,
                              place.rank, place.size);
    }
    if (rc == 0) {
        place.port = (uint16_t)port;
        *ret = place;
    }
    return rc;
}

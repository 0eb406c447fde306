/* Options from options.def; the data rank also from the environments of launchers. */
#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_GIVE_UP_MS 60000
#define DEFAULT_SILENCE_MS 60000
#define DEFAULT_EXCHANGE_TIMEOUT_MS 60000
#define MAX_MS ((uint64_t)24 * 3600 * 1000)
#define MAX_WINDOW 4096 /* libskrull's */

struct option {
    const char *name, *metavar, *help;
};

/* clang-format off */
static const struct option options[] = {
#define X(name, metavar, help) { (name), (metavar), (help) },
#include "options.def"
#undef X
};
/* clang-format on */

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))

static const char *const rank_variables[] = {"SKRULL_DATA_RANK", "OMPI_COMM_WORLD_RANK", "RANK",
                                             "SLURM_PROCID"};

/* What was given, by the places of options.def. */
struct given {
    const char *texts[N_OPTIONS];
    const char *data_roots[MAX_DATA_ROOTS]; /* all of them; texts has the last */
    size_t n_data_roots;
    const char *tokens[MAX_TOKEN_FILES]; /* likewise */
    size_t n_tokens;
};

static enum options_outcome wrong(const char *what, const char *why)
{
    (void)fprintf(stderr, "skrull-worker: %s: %s\n", what, why);
    return OPTIONS_WRONG;
}

static void print_help(void)
{
    (void)printf(
        "usage: skrull-worker --job NAME [--server ADDR] [--data-rank R] [--from S] [--count N]\n"
        "                     [--backend none|cpu|cuda] [--window N] [--pause-ms N] "
        "[--give-up-ms N] [--silence-ms N]\n"
        "                     [--fallback none|local] [--data-root DIR]... "
        "[--fallback-after-ms N]\n"
        "                     [--model tiny|tiny64|CONFIG] [--comm none|threads|mpi|tcp] "
        "[--exchange gather|ring]\n"
        "                     [--optimizer replicated|sharded] [--recompute none|selective]\n"
        "                     [--tokens PREFIX]... [--unscheduled] [--save-weights FILE]\n"
        "                     [--exchange-timeout-ms N]\n\n"
        "streams the plans of a data rank, runs them, reports each step; a line a step\n\n");
    for (size_t i = 0; i < N_OPTIONS; i++) {
        char left[40];

        (void)snprintf(left, sizeof(left), "%s %s", options[i].name, options[i].metavar);
        (void)printf("  %-24s %s\n", left, options[i].help);
    }
    (void)printf(
        "  %-24s %s\n  %-24s %s\n\nExit status: 0 the job's end, or --count steps; 1 it failed; "
        "2 wrong usage;\n3 no such job or step; 4 the daemon could not be reached.\n",
        "--help", "print this help", "--version", "print the version");
}

static const char *text_of(const struct given *given, const char *name)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        if (strcmp(options[i].name, name) == 0) {
            return given->texts[i];
        }
    }
    return NULL;
}

/* Options that may come several times. */
static enum options_outcome take_another(struct given *given, const char *name, const char *text)
{
    if (strcmp(name, "--data-root") == 0) {
        if (given->n_data_roots == MAX_DATA_ROOTS) {
            return wrong(name, "more than 64");
        }
        given->data_roots[given->n_data_roots++] = text;
    } else if (strcmp(name, "--tokens") == 0) {
        if (given->n_tokens == MAX_TOKEN_FILES) {
            return wrong(name, "more than 64");
        }
        given->tokens[given->n_tokens++] = text;
    }
    return OPTIONS_RUN;
}

/* Takes words[*at] and its value; both "--name value" and "--name=value". */
static enum options_outcome take(struct given *given, int n_words, char *const *words, int *at)
{
    const char *word = words[(*at)++], *equals = strchr(word, '=');
    size_t len = equals ? (size_t)(equals - word) : strlen(word);

    if (strcmp(word, "--help") == 0) {
        print_help();
        return OPTIONS_SAID;
    }
    if (strcmp(word, "--version") == 0) {
        (void)printf("skrull-worker %s\n", SKRULL_VERSION);
        return OPTIONS_SAID;
    }
    for (size_t i = 0; i < N_OPTIONS; i++) {
        if (strlen(options[i].name) != len || memcmp(options[i].name, word, len) != 0) {
            continue;
        }
        if (!options[i].metavar[0]) {
            given->texts[i] = "";
            return equals ? wrong(options[i].name, "takes no value") : OPTIONS_RUN;
        }
        if (!equals && *at == n_words) {
            return wrong(options[i].name, "a value is missing; see --help");
        }
        given->texts[i] = equals ? equals + 1 : words[(*at)++];
        return take_another(given, options[i].name, given->texts[i]);
    }
    return wrong(word, "no such option; see --help");
}

static bool parse_number(const char *text, uint64_t max, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (const char *c = text; *c; c++) {
        uint64_t digit = (uint64_t)(*c - '0');

        if (*c < '0' || *c > '9' || number > (UINT64_MAX - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    *ret_number = number;
    return text[0] && number <= max;
}

/* Leaves *ret_number alone where the option was not given. */
static enum options_outcome take_number(const struct given *given, const char *name, uint64_t max,
                                        uint64_t *ret_number)
{
    const char *text = text_of(given, name);
    char why[64];

    if (text && !parse_number(text, max, ret_number)) {
        (void)snprintf(why, sizeof(why), "not a number from 0 to %" PRIu64, max);
        return wrong(name, why);
    }
    return OPTIONS_RUN;
}

static enum options_outcome take_rank(const struct given *given, uint32_t *ret_rank)
{
    const char *name = "--data-rank", *text = text_of(given, name);
    uint64_t rank;

    for (size_t i = 0; !text && i < sizeof(rank_variables) / sizeof(rank_variables[0]); i++) {
        name = rank_variables[i];
        text = getenv(name);
    }
    if (!text) {
        return wrong("--data-rank",
                     "which? none of SKRULL_DATA_RANK, OMPI_COMM_WORLD_RANK, RANK and "
                     "SLURM_PROCID is set either");
    }
    if (!parse_number(text, UINT32_MAX, &rank)) {
        return wrong(name, "not a data rank");
    }
    *ret_rank = (uint32_t)rank;
    return OPTIONS_RUN;
}

/* One of `words` ([n_words], "a, b and c are allowed" in `why`); not given: *ret stays. */
static enum options_outcome take_word(const struct given *given, const char *name,
                                      const char *const *words, const char *why, int *ret)
{
    const char *text = text_of(given, name);

    for (int i = 0; text && words[i]; i++) {
        if (strcmp(text, words[i]) == 0) {
            *ret = i;
            return OPTIONS_RUN;
        }
    }
    return text ? wrong(name, why) : OPTIONS_RUN;
}

/* What only a backend that trains can do. */
static enum options_outcome check_untrained(const struct given *given)
{
    static const char *const names[] = {"--model",       "--comm",         "--exchange",
                                        "--optimizer",   "--recompute",    "--tokens",
                                        "--unscheduled", "--save-weights", "--exchange-timeout-ms"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (text_of(given, names[i])) {
            return wrong(names[i], "nothing to do with backend none");
        }
    }
    return OPTIONS_RUN;
}

static enum options_outcome check_training(const struct given *given, struct training_words *ret)
{
    static const char *const comms[] = {"", "none", "threads", "mpi", "tcp", NULL};
    static const char *const exchanges[] = {"gather", "ring", NULL};
    static const char *const optimizers[] = {"", "replicated", "sharded", NULL};
    static const char *const recomputes[] = {"", "none", "selective", NULL};
    const char *model = text_of(given, "--model");
    int comm = 0, exchange = 0, optimizer = 0, recompute = 0;
    enum options_outcome outcome =
        take_word(given, "--comm", comms, "none, threads, mpi and tcp are allowed", &comm);

    if (outcome == OPTIONS_RUN) {
        outcome =
            take_word(given, "--exchange", exchanges, "gather and ring are allowed", &exchange);
    }
    if (outcome == OPTIONS_RUN) {
        outcome = take_word(given, "--optimizer", optimizers, "replicated and sharded are allowed",
                            &optimizer);
    }
    if (outcome == OPTIONS_RUN) {
        outcome = take_word(given, "--recompute", recomputes, "none and selective are allowed",
                            &recompute);
    }
    ret->timeout_ms = DEFAULT_EXCHANGE_TIMEOUT_MS;
    if (outcome == OPTIONS_RUN) {
        outcome = take_number(given, "--exchange-timeout-ms", MAX_MS, &ret->timeout_ms);
    }
    ret->model = model; /* NULL: by the backend */
    ret->comm = (enum worker_comm)comm;
    ret->is_ring = exchange == 1;
    ret->is_sharded = (enum worker_choice)optimizer;
    ret->recompute = (enum worker_choice)recompute;
    memcpy(ret->tokens, given->tokens, sizeof(ret->tokens));
    ret->n_tokens = given->n_tokens;
    ret->is_unscheduled = text_of(given, "--unscheduled") != NULL;
    ret->save_weights = text_of(given, "--save-weights");
    return outcome;
}

/* TCP carries too little for the CPU's exchanges, and a process has one GPU. */
static enum options_outcome check_comm(const struct worker_options *taken)
{
    enum worker_comm comm = taken->training.comm;

    if (taken->backend == WORKER_BACKEND_CPU && comm == WORKER_COMM_TCP) {
        return wrong("--comm", "tcp only starts NCCL, with --backend cuda");
    }
    if (taken->backend == WORKER_BACKEND_CUDA && comm == WORKER_COMM_THREADS) {
        return wrong("--comm", "with --backend cuda every rank is a process: mpi or tcp");
    }
    return OPTIONS_RUN;
}

static enum options_outcome check_backend(const struct given *given, struct worker_options *ret)
{
    const char *backend = text_of(given, "--backend");
    enum options_outcome outcome;

    if (backend && (strcmp(backend, "cpu") == 0 || strcmp(backend, "cuda") == 0)) {
        ret->backend = strcmp(backend, "cpu") == 0 ? WORKER_BACKEND_CPU : WORKER_BACKEND_CUDA;
        outcome = check_training(given, &ret->training);
        if (!ret->training.model) {
            ret->training.model = ret->backend == WORKER_BACKEND_CPU ? "tiny" : "tiny64";
        }
        return outcome == OPTIONS_RUN ? check_comm(ret) : outcome;
    }
    if (backend && strcmp(backend, "none") != 0) {
        return wrong("--backend", "none, cpu and cuda are allowed");
    }
    return check_untrained(given);
}

static enum options_outcome check_fallback(const struct given *given, struct worker_options *ret)
{
    const char *fallback = text_of(given, "--fallback");

    ret->is_local = fallback && strcmp(fallback, "local") == 0;
    memcpy(ret->data_roots, given->data_roots, sizeof(ret->data_roots));
    ret->n_data_roots = given->n_data_roots;
    if (fallback && !ret->is_local && strcmp(fallback, "none") != 0) {
        return wrong("--fallback", "none and local are allowed");
    }
    if (ret->is_local && ret->n_data_roots == 0) {
        return wrong("--fallback", "local needs --data-root DIR, where the job's indexes lie");
    }
    if (!ret->is_local && (ret->n_data_roots || text_of(given, "--fallback-after-ms"))) {
        return wrong(ret->n_data_roots ? "--data-root" : "--fallback-after-ms",
                     "nothing to do without --fallback local");
    }
    return OPTIONS_RUN;
}

static enum options_outcome check(const struct given *given, struct worker_options *ret)
{
    uint64_t window = 0;
    enum options_outcome outcome = check_backend(given, ret);

    if (outcome == OPTIONS_RUN) {
        outcome = take_number(given, "--from", UINT64_MAX, &ret->from_step);
    }
    if (outcome == OPTIONS_RUN) {
        outcome = take_number(given, "--count", UINT64_MAX, &ret->count);
    }
    if (outcome == OPTIONS_RUN) {
        outcome = take_number(given, "--window", MAX_WINDOW, &window);
    }
    if (outcome == OPTIONS_RUN) {
        outcome = take_number(given, "--pause-ms", MAX_MS, &ret->pause_ms);
    }
    if (outcome == OPTIONS_RUN) {
        outcome = take_number(given, "--give-up-ms", MAX_MS, &ret->give_up_ms);
    }
    if (outcome == OPTIONS_RUN) {
        outcome = take_number(given, "--silence-ms", MAX_MS, &ret->silence_ms);
    }
    if (outcome == OPTIONS_RUN) {
        outcome = take_number(given, "--fallback-after-ms", MAX_MS, &ret->fallback_after_ms);
    }
    if (outcome == OPTIONS_RUN) {
        outcome = check_fallback(given, ret);
    }
    if (outcome == OPTIONS_RUN && !text_of(given, "--job")) {
        outcome = wrong("--job", "which job? see --help");
    }
    /* With all ranks here, or none, it is no one's. */
    if (outcome == OPTIONS_RUN && !ret->training.is_unscheduled &&
        ret->training.comm != WORKER_COMM_THREADS) {
        outcome = take_rank(given, &ret->data_rank);
    }
    ret->window = (uint32_t)window;
    ret->job = text_of(given, "--job");
    ret->server = text_of(given, "--server");
    return outcome;
}

enum options_outcome options_read(int n_words, char *const *words, struct worker_options *ret)
{
    struct given given = {0};
    int at = 0;

    *ret =
        (struct worker_options){.give_up_ms = DEFAULT_GIVE_UP_MS, .silence_ms = DEFAULT_SILENCE_MS};
    while (at < n_words) {
        enum options_outcome outcome = take(&given, n_words, words, &at);

        if (outcome != OPTIONS_RUN) {
            return outcome;
        }
    }
    return check(&given, ret);
}

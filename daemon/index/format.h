/*
 * Inside of the index stage: what a format is to index.c. To add one: index_x.c defines `format_x`,
 * formats.def names it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/types.h>

#include "base/file.h"
#include "index/index.h"

/* The first bytes of a file are enough to tell what it is. */
#define INDEX_HEAD_SIZE 512

/* A regular file about to be read. */
struct index_source {
    int fd;
    const char *path; /* for messages: index_short_path's */
    struct file_stamp stamp;
    unsigned char head[INDEX_HEAD_SIZE]; /* of what is inside, where the file is compressed */
    size_t head_size;                    /* bytes of head that there are */
    const struct decoder *decoder;       /* NULL: not compressed */
    const char *column;                  /* what holds the lengths; NULL or "": the obvious one */
    enum skrull_unit unit;
    int is_forced; /* the format was asked for */
    uint64_t max_count, max_decoded;
};

/* An opened index; the public part is handed out. */
struct index_file {
    struct length_index idx;
    const struct index_format *format;
    char *path;            /* owned; for the messages of verify */
    uint32_t *parsed;      /* owned lengths, or NULL */
    uint32_t *parsed_loss; /* owned loss tokens, or NULL */
    size_t map_size;
    uint64_t stored_hash; /* of a .skx's payload */
};

enum index_takes {
    TAKES_TEXT = 1,      /* is text: may be compressed, and is asked after all binary formats */
    TAKES_COLUMN = 2,    /* has names for what it holds */
    TAKES_DOCUMENTS = 4, /* knows documents of several sequences */
};

struct index_format {
    const char *name;
    const char *summary;
    /* Which of the options it understands, what compresses it. */
    unsigned int takes; /* enum index_takes */
    /* 1: these are the first bytes of such a file. */
    int (*matches)(const struct index_source *source);
    /* Fills `ret_file`, zeroed but for `format` and `path`; index.c frees what it holds after an
     * error, too. */
    int (*open)(const struct index_source *source, struct index_file *ret_file,
                struct skrull_error *err);
    /* Checks what only reading the whole payload can tell, and hashes it. */
    int (*verify)(const struct index_file *file, uint64_t *ret_hash, struct skrull_error *err);
};

#define X(name) extern const struct index_format format_##name;
#include "index/formats.def"
#undef X

/* The end of a long path, so that what follows in a message is not cut. */
const char *index_short_path(const char *path);

/* Reads [offset, offset + size) of the file as it was when it was opened. FAILED_PRECONDITION: it
 * has got shorter. */
int index_source_read(const struct index_source *source, void *bytes, size_t size, uint64_t offset,
                      struct skrull_error *err);

/* FAILED_PRECONDITION: somebody wrote to the file since. Asked after the last byte. */
int index_source_check_unchanged(const struct index_source *source, struct skrull_error *err);

/* What the file is, where it is none of formats.def: refused by name and with the way out. 0:
 * nothing known, so text may be tried. */
int detect_foreign(const struct index_source *source, struct skrull_error *err);

/* Refuses a format's name that is to come; 0: never heard of it. */
int detect_name(const char *name, const char *path, struct skrull_error *err);

/* Refuses what is no regular file, naming what it is; `fd` may be a data set's folder. */
int detect_not_a_file(int fd, const char *path, unsigned int mode, struct skrull_error *err);

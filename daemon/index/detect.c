/*
 * What a file is that this build does not read: recognised by its first bytes, so that the user
 * learns the format's name and the way out rather than that byte 0 is no digit. Magics are those of
 * the formats' own writers; a table row each. Thread-safe: tables and no state.
 */
#include "index/format.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TO_TEXT "write the lengths as text, one integer a line, or as .skx"

struct magic {
    const char *bytes;
    uint8_t len;
    uint16_t offset;
    uint8_t is_to_come; /* else it never will be read */
    const char *name;
    const char *remedy;
};

/* clang-format off */
static const struct magic magics[] = {
    {"TNTIDX\0\0",               8, 0,   1, "legacy fairseq .idx (TNTIDX)", TO_TEXT},
    {"HUFFIDX\0\0",              9, 0,   1, "fairseq huffman .idx (HUFFIDX)", TO_TEXT},
    {"PK\x03\x04",               4, 0,   1, "npz (or another zip)", "numpy.savetxt(PATH, lengths, fmt='%d') writes text"},
    {"PK\x05\x06",               4, 0,   1, "npz (an empty zip)", TO_TEXT},
    {"PAR1",                     4, 0,   1, "parquet", TO_TEXT},
    {"PARE",                     4, 0,   0, "encrypted Parquet", TO_TEXT},
    {"\xff\xff\xff\xff",         4, 0,   1, "arrow (IPC stream)", TO_TEXT},
    {"ARROW1",                   6, 0,   1, "arrow (IPC file, Feather v2)", TO_TEXT},
    {"FEA1",                     4, 0,   0, "Feather v1", TO_TEXT},
    {"\x1f\x8b",                 2, 0,   0, "gzip within gzip or zstd", "decompress it once"},
    {"\x28\xb5\x2f\xfd",         4, 0,   0, "zstd within gzip or zstd", "decompress it once"},
    {"BZh",                      3, 0,   1, "bzip2", "bunzip2 it first"},
    {"\xfd" "7zXZ",              5, 0,   1, "xz", "unxz it first"},
    {"SQLite format 3\0",       16, 0,   1, "SQLite (energon)", TO_TEXT},
    {"\x88\xd8\x34\x01",         4, 0,   1, "llm.c token shard", TO_TEXT},
    {"\xa1\xd9\x34\x01",         4, 0,   1, "llm.c token shard", TO_TEXT},
    {"\x8a\xd8\x34\x01",         4, 0,   0, "an llm.c evaluation file", TO_TEXT},
    {"ustar",                    5, 257, 1, "tar (WebDataset)", TO_TEXT},
    {"\x80\x02",                 2, 0,   0, "a pickle, which can run code,", TO_TEXT},
    {"\x80\x03",                 2, 0,   0, "a pickle, which can run code,", TO_TEXT},
    {"\x80\x04",                 2, 0,   0, "a pickle, which can run code,", TO_TEXT},
    {"\x80\x05",                 2, 0,   0, "a pickle, which can run code,", TO_TEXT},
    {"version https://git-lfs", 23, 0,   0, "a Git LFS pointer", "git lfs pull fetches the file itself"},
    {"\xff\xfe",                 2, 0,   0, "UTF-16 text (PowerShell's > writes it)", "iconv -f UTF-16 -t UTF-8 converts it"},
    {"\xfe\xff",                 2, 0,   0, "UTF-16 text", "iconv -f UTF-16 -t UTF-8 converts it"},
    {"\x7f" "ELF",               4, 0,   0, "a program (ELF)", TO_TEXT},
};

/* What `format` may say one day; the names of formats.def are known already. */
static const char *const names_to_come[] = {
    "arrow", "datatrove", "deepspeed", "energon", "fairseq", "internevo",
    "litdata", "llmc", "mds", "nanogpt", "npz", "olmo", "parquet", "xtuner",
};

/* A folder is a data set of the format whose file or folder it holds. */
static const char *const folders[][2] = {
    {"dataset_dict.json", "arrow (Hugging Face DatasetDict folder)"},
    {"state.json",        "arrow (Hugging Face data set folder)"},
    {".nv-meta",          "energon (data set folder)"},
    {"index.json",        "mds or litdata (data set folder)"},
    {"_versions",         "lance (data set folder)"},
};

/* Such a folder's own file, given instead of it: its name, and the key that its writer puts first. */
static const struct {
    const char *name, *key, *what;
} metadata[] = {
    {"dataset_dict.json", "\"splits\"",      "arrow (of a Hugging Face DatasetDict, this is the list of splits)"},
    {"state.json",        "\"_data_files\"", "arrow (of a Hugging Face data set, this is the list of files)"},
    {"index.json",        "\"shards\"",      "mds (this is the list of shards)"},
    {"index.json",        "\"chunks\"",      "litdata (this is the list of chunks)"},
};
/* clang-format on */

#define N_ITEMS(table) (sizeof(table) / sizeof((table)[0]))

static int to_come(const char *path, const char *name, const char *remedy, struct skrull_error *err)
{
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "%s: %s is not built yet; %s", path,
                            name, remedy);
}

int detect_name(const char *name, const char *path, struct skrull_error *err)
{
    for (size_t i = 0; i < N_ITEMS(names_to_come); i++) {
        if (strcmp(names_to_come[i], name) == 0) {
            return to_come(path, name, TO_TEXT, err);
        }
    }
    return 0;
}

/* A Lance file says so only at its end. */
static int is_lance(const struct index_source *source)
{
    char tail[4];
    size_t size;

    return !source->decoder && source->stamp.size > sizeof(tail) &&
           file_read_at(source->fd, source->path, tail, sizeof(tail),
                        source->stamp.size - sizeof(tail), &size, NULL) == 0 &&
           size == sizeof(tail) && memcmp(tail, "LANC", sizeof(tail)) == 0;
}

/* Refuses a data set's metadata, which is JSON without lengths; a column says that there are. */
static int detect_metadata(const struct index_source *source, struct skrull_error *err)
{
    const char *slash = strrchr(source->path, '/');
    const char *name = slash ? slash + 1 : source->path;

    for (size_t i = 0; !source->column[0] && i < N_ITEMS(metadata); i++) {
        const char *key = metadata[i].key;

        if (strcmp(name, metadata[i].name) == 0 && source->head_size && source->head[0] == '{' &&
            memmem(source->head, source->head_size, key, strlen(key))) {
            return to_come(source->path, metadata[i].what, TO_TEXT, err);
        }
    }
    return 0;
}

int detect_foreign(const struct index_source *source, struct skrull_error *err)
{
    for (size_t i = 0; i < N_ITEMS(magics); i++) {
        const struct magic *m = &magics[i];

        if (source->head_size < (size_t)m->offset + m->len ||
            memcmp(source->head + m->offset, m->bytes, m->len) != 0) {
            continue;
        }
        if (m->is_to_come) {
            return to_come(source->path, m->name, m->remedy, err);
        }
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "%s: this is %s and no length index; %s", source->path, m->name,
                                m->remedy);
    }
    return is_lance(source) ? to_come(source->path, "lance", TO_TEXT, err)
                            : detect_metadata(source, err);
}

static const char *kind_of(unsigned int mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "a folder";
    case S_IFIFO:
        return "a pipe";
    case S_IFSOCK:
        return "a socket";
    case S_IFBLK:
    case S_IFCHR:
        return "a device";
    default:
        return "no file";
    }
}

int detect_not_a_file(int fd, const char *path, unsigned int mode, struct skrull_error *err)
{
    for (size_t i = 0; S_ISDIR(mode) && i < N_ITEMS(folders); i++) {
        if (faccessat(fd, folders[i][0], F_OK, 0) == 0) {
            return to_come(path, folders[i][1], TO_TEXT, err);
        }
    }
    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "%s: this is %s; an index is a regular file", path, kind_of(mode));
}

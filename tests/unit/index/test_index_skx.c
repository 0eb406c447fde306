/* .skx: written, mapped back, and every way in which one can be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <xxhash.h>

#include "base/file.h"
#include "index/payload.h"
#include "unit/index/opened.h"

#define MAX_ROWS 64
#define MAX_SIZE (SKX_HEADER_SIZE + 3 * (4 * MAX_ROWS + SKX_ALIGN))

/* A .skx laid out by hand from the contract, to hold the code against. */
struct image {
    unsigned char bytes[MAX_SIZE + 8];
    size_t size;
    size_t loss_at, scores_at; /* 0: none */
};

static void put_u32(struct image *image, size_t at, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        image->bytes[at + (size_t)i] = (unsigned char)(value >> (8 * i));
    }
}

static void put_u64(struct image *image, size_t at, uint64_t value)
{
    put_u32(image, at, (uint32_t)value);
    put_u32(image, at + 4, (uint32_t)(value >> 32));
}

/* Makes both hashes right again after a change. */
static void seal(struct image *image)
{
    put_u64(image, 48, XXH3_64bits(image->bytes + 64, image->size - 64));
    put_u64(image, 56, XXH3_64bits(image->bytes, 56));
}

/* Row i: length 10 + i, 1 + i loss tokens, score bits 7 + i. */
static struct image make_image(uint32_t count, uint32_t flags)
{
    struct image image = {.size = 64};
    uint64_t tokens = 0, loss_tokens = 0;

    memcpy(image.bytes, "SKRULLX", 8);
    for (uint32_t i = 0; i < count; i++, image.size += 4) {
        put_u32(&image, image.size, 10 + i);
        tokens += 10 + i;
    }
    if (flags & 1) {
        image.size = image.loss_at = (image.size + 63) / 64 * 64;
        for (uint32_t i = 0; i < count; i++, image.size += 4) {
            put_u32(&image, image.size, 1 + i);
            loss_tokens += 1 + i;
        }
    }
    if (flags & 2) {
        image.size = image.scores_at = (image.size + 63) / 64 * 64;
        for (uint32_t i = 0; i < count; i++, image.size += 4) {
            put_u32(&image, image.size, 7 + i);
        }
    }
    put_u32(&image, 8, 1);
    put_u32(&image, 12, flags);
    put_u64(&image, 16, count);
    put_u64(&image, 24, tokens);
    put_u64(&image, 32, loss_tokens);
    seal(&image);
    return image;
}

static void assert_rows(const struct length_index *idx, uint32_t count, uint32_t flags)
{
    assert_string_equal(idx->format, "skx");
    assert_int_equal(idx->count, count);
    assert_int_equal(idx->tokens, 10 * count + count * (count - 1) / 2);
    assert_int_equal(idx->n_loss_tokens, flags & 1 ? count * (count + 1) / 2 : 0);
    assert_int_equal(idx->loss_tokens != NULL, (flags & 1) != 0);
    assert_int_equal(idx->score_bits != NULL, (flags & 2) != 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(idx->lengths[i], 10 + i);
        assert_true(!(flags & 1) || idx->loss_tokens[i] == 1 + i);
        assert_true(!(flags & 2) || idx->score_bits[i] == 7 + i);
    }
    assert_int_equal((uintptr_t)idx->lengths % 64, 0);
    assert_int_equal((uintptr_t)idx->loss_tokens % 64, 0);
    assert_int_equal((uintptr_t)idx->score_bits % 64, 0);
}

/* Read as the contract lays it out, and written back byte by byte: all gap widths, all flags. */
static void test_skx__reads_and_writes_the_layout(void **state)
{
    struct temporary *folder = *state;

    for (uint32_t flags = 0; flags < 4; flags++) {
        for (uint32_t count = 1; count <= 34; count += count < 14 || count > 17 ? 3 : 1) {
            struct image image = make_image(count, flags);
            struct length_index *idx = NULL;
            unsigned char bytes[MAX_SIZE];
            uint64_t hash = 0;
            size_t got;
            int fd;

            assert_int_equal(open_bytes(folder, "a.skx", image.bytes, image.size, &idx, NULL), 0);
            assert_rows(idx, count, flags);
            assert_int_equal(index_verify(idx, &hash, NULL), 0);
            assert_true(hash == XXH3_64bits(image.bytes + 64, image.size - 64));
            assert_int_equal(index_write_skx(idx, temporary_path(folder, "b.skx"), NULL), 0);
            index_close(idx);

            fd = temporary_open(folder, "b.skx");
            assert_int_equal(file_read_at(fd, "b", bytes, sizeof(bytes), 0, &got, NULL), 0);
            (void)close(fd);
            assert_int_equal(got, image.size);
            assert_memory_equal(bytes, image.bytes, got);
        }
    }
}

enum seal { AS_IS, SEALED };

struct fault {
    const char *message;
    int code;
    enum seal seal; /* whether the hashes are right all the same */
    void (*change)(struct image *image);
};

static void magic(struct image *image)
{
    image->bytes[7] = 'Y';
}
static void version(struct image *image)
{
    put_u32(image, 8, 2);
}
static void unknown_flag(struct image *image)
{
    put_u32(image, 12, 5);
}
static void header_bit(struct image *image)
{
    image->bytes[24] ^= 1;
}
static void header_hash_bit(struct image *image)
{
    image->bytes[63] ^= 0x80;
}
static void reserved(struct image *image)
{
    put_u64(image, 40, 1);
}
static void loss_without_flag(struct image *image)
{
    *image = make_image(20, 0);
    put_u64(image, 32, 5);
}
static void no_rows(struct image *image)
{
    *image = make_image(0, 0);
}
static void count_of_2_62(struct image *image)
{
    put_u64(image, 16, UINT64_C(1) << 62); /* x 4 is 0 in 64 bits */
}
static void count_of_2_61(struct image *image)
{
    put_u64(image, 16, (UINT64_C(1) << 61) - 16);
}
static void count_past_everything(struct image *image)
{
    put_u64(image, 16, UINT64_MAX);
}
static void count_plus_one(struct image *image)
{
    put_u64(image, 16, 21);
}
static void count_minus_one(struct image *image)
{
    put_u64(image, 16, 19);
}
static void one_byte_less(struct image *image)
{
    image->size--;
}
static void half_a_header(struct image *image)
{
    image->size = 40;
}
static void header_alone(struct image *image)
{
    image->size = 64;
}
static void one_byte_more(struct image *image)
{
    image->size++;
}

static void test_skx_open__refuses(void **state)
{
    static const struct fault faults[] = {
        {"line 1: SKRULLXY is no whole number", SKRULL_ERR_INVALID_ARGUMENT, SEALED, magic},
        {".skx version 2; this build reads version 1", SKRULL_ERR_INVALID_ARGUMENT, SEALED,
         version},
        {".skx flags 0x5; this build knows 0x3", SKRULL_ERR_INVALID_ARGUMENT, SEALED, unknown_flag},
        {"the header's hash does not match", SKRULL_ERR_DATA_LOSS, AS_IS, header_bit},
        {"the header's hash does not match", SKRULL_ERR_DATA_LOSS, AS_IS, header_hash_bit},
        {"reserved word is not 0", SKRULL_ERR_DATA_LOSS, SEALED, reserved},
        {"loss tokens in the header, but none", SKRULL_ERR_DATA_LOSS, SEALED, loss_without_flag},
        {"holds no sequence", SKRULL_ERR_INVALID_ARGUMENT, SEALED, no_rows},
        {"more than any file holds", SKRULL_ERR_DATA_LOSS, SEALED, count_of_2_62},
        {"more than any file holds", SKRULL_ERR_DATA_LOSS, SEALED, count_of_2_61},
        {"more than any file holds", SKRULL_ERR_DATA_LOSS, SEALED, count_past_everything},
        {"truncated: 272 bytes, but 21 rows take 276", SKRULL_ERR_DATA_LOSS, SEALED,
         count_plus_one},
        {"bytes after its end: 272 bytes, but 19 rows take 268", SKRULL_ERR_DATA_LOSS, SEALED,
         count_minus_one},
        {"truncated: 271 bytes, but 20 rows take 272", SKRULL_ERR_DATA_LOSS, AS_IS, one_byte_less},
        {"truncated in its header", SKRULL_ERR_DATA_LOSS, AS_IS, half_a_header},
        {"truncated: 64 bytes", SKRULL_ERR_DATA_LOSS, AS_IS, header_alone},
        {"bytes after its end: 273 bytes", SKRULL_ERR_DATA_LOSS, AS_IS, one_byte_more},
    };

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct image image = make_image(20, 1);
        struct length_index *idx = NULL;
        struct skrull_error err = {0};
        int status;

        faults[i].change(&image);
        if (faults[i].seal == SEALED) {
            seal(&image);
        }
        status = open_bytes(*state, "a.skx", image.bytes, image.size, &idx, &err);
        print_message("# case %zu: %s\n", i, err.message);
        assert_int_equal(status, faults[i].code);
        assert_null(idx);
        assert_non_null(strstr(err.message, "/a.skx: "));
        assert_non_null(strstr(err.message, faults[i].message));
    }
}

static void payload_bit(struct image *image)
{
    image->bytes[70] ^= 4;
}
static void gap_byte(struct image *image)
{
    image->bytes[image->loss_at - 1] = 1;
}
static void first_gap_byte(struct image *image)
{
    image->bytes[64 + 80] = 1;
}
static void score_gap_byte(struct image *image)
{
    image->bytes[image->scores_at - 1] = 1;
}
static void length_of_0(struct image *image)
{
    put_u32(image, 64 + 4 * 3, 0);
}
static void loss_past_length(struct image *image)
{
    put_u32(image, image->loss_at + 4 * 5, 16);
}
static void tokens_sum(struct image *image)
{
    put_u64(image, 24, 391);
}
static void loss_sum(struct image *image)
{
    put_u64(image, 32, 209);
}

static void test_skx_verify__refuses(void **state)
{
    static const struct fault faults[] = {
        {"the payload's hash is", SKRULL_ERR_DATA_LOSS, AS_IS, payload_bit},
        {"byte 191, between two arrays, is not zero", SKRULL_ERR_DATA_LOSS, SEALED, gap_byte},
        {"byte 144, between two arrays, is not zero", SKRULL_ERR_DATA_LOSS, SEALED, first_gap_byte},
        {"byte 319, between two arrays, is not zero", SKRULL_ERR_DATA_LOSS, SEALED, score_gap_byte},
        {"row 3 has length 0", SKRULL_ERR_DATA_LOSS, SEALED, length_of_0},
        {"row 5 has 16 loss tokens of 15 tokens", SKRULL_ERR_DATA_LOSS, SEALED, loss_past_length},
        {"the lengths sum to 390, the header says 391", SKRULL_ERR_DATA_LOSS, SEALED, tokens_sum},
        {"the loss tokens sum to 210, the header says 209", SKRULL_ERR_DATA_LOSS, SEALED, loss_sum},
    };

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        struct image image = make_image(20, 3);
        struct length_index *idx = NULL;
        struct skrull_error err = {0};
        uint64_t hash = 99;

        faults[i].change(&image);
        if (faults[i].seal == SEALED) {
            seal(&image);
        }
        assert_int_equal(open_bytes(*state, "a.skx", image.bytes, image.size, &idx, NULL), 0);
        assert_int_equal(index_verify(idx, &hash, &err), faults[i].code);
        print_message("# case %zu: %s\n", i, err.message);
        assert_int_equal(hash, 99);
        assert_non_null(strstr(err.message, "/a.skx: "));
        assert_non_null(strstr(err.message, faults[i].message));
        index_close(idx);
    }
}

/* Any one bit of a file that is flipped is found, at opening or at verification. */
static void test_skx__every_flipped_bit_is_found(void **state)
{
    struct image image = make_image(5, 3);

    for (size_t bit = 0; bit < 8 * image.size; bit++) {
        struct length_index *idx = NULL;
        uint64_t hash;

        image.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        if (open_bytes(*state, "a.skx", image.bytes, image.size, &idx, NULL) == 0) {
            assert_int_equal(index_verify(idx, &hash, NULL), SKRULL_ERR_DATA_LOSS);
        }
        index_close(idx);
        image.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

static void test_skx__any_truncation_is_found(void **state)
{
    struct image image = make_image(20, 3);

    for (size_t size = 0; size < image.size; size++) {
        struct length_index *idx = NULL;

        assert_true(open_bytes(*state, "a.skx", image.bytes, size, &idx, NULL) < 0);
        assert_null(idx);
    }
}

static void test_skx_open__by_name_wants_the_magic(void **state)
{
    static const struct index_options as_skx = {.format = "skx"};
    struct length_index *idx = NULL;
    struct skrull_error err = {0};

    temporary_write(*state, "a.txt", "1\n2\n", 4);
    assert_int_equal(open_path(temporary_path(*state, "a.txt"), &as_skx, &idx, &err),
                     SKRULL_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "no .skx: it does not begin with SKRULLX"));
}

/* A file that is replaced by rename, as index_write_skx does, leaves an opened index as it was. */
static void test_skx__survives_its_replacement(void **state)
{
    struct temporary *folder = *state;
    struct image one = make_image(20, 1), two = make_image(3, 0);
    struct length_index *idx = NULL, *other = NULL;

    assert_int_equal(open_bytes(folder, "b.skx", two.bytes, two.size, &other, NULL), 0);
    assert_int_equal(open_bytes(folder, "a.skx", one.bytes, one.size, &idx, NULL), 0);
    assert_int_equal(index_write_skx(other, temporary_path(folder, "a.skx"), NULL), 0);
    index_close(other);
    assert_rows(idx, 20, 1);
    index_close(idx);
    assert_int_equal(open_path(temporary_path(folder, "a.skx"), NULL, &idx, NULL), 0);
    assert_rows(idx, 3, 0);
    index_close(idx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_skx__reads_and_writes_the_layout, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test_setup_teardown(test_skx_open__refuses, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test_setup_teardown(test_skx_verify__refuses, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test_setup_teardown(test_skx__every_flipped_bit_is_found, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test_setup_teardown(test_skx__any_truncation_is_found, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test_setup_teardown(test_skx_open__by_name_wants_the_magic, temporary_setup,
                                        temporary_teardown),
        cmocka_unit_test_setup_teardown(test_skx__survives_its_replacement, temporary_setup,
                                        temporary_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* DACP on micro-batches worked out by hand. */
#include "plan/dacp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plan/sort.h"
#include "unit/plan/fixture.h"

#define MAX_ROW 8

struct row {
    uint32_t cp, bucket, align;
    enum dacp_rule rule;
    uint32_t lengths[MAX_ROW]; /* 0 ends */
    const char *wanted;        /* a sequence each: its rank, or D: distributed; "": DACP fails */
};

#define ROOM DACP_MOST_ROOM
#define LOAD DACP_LEAST_LOADED_FIRST

static void check_row(const struct row *row)
{
    struct placement placements[MAX_ROW] = {0};
    struct dacp_deal deal = {.stride = 1};
    char got[MAX_ROW + 1] = "";
    struct fixture fixture;
    struct batch batch;
    struct dacp dacp;
    bool is_placed;

    while (deal.end < MAX_ROW && row->lengths[deal.end] > 0) {
        deal.end++;
    }
    fixture_init(&fixture, 1, row->cp, row->bucket);
    fixture.input.options.align = row->align;
    fixture.input.options.shard = SKRULL_SHARD_CONTIGUOUS;
    fixture_set(&fixture, row->lengths, deal.end);
    fixture_batch(&fixture, &batch);
    deal.order = sort_by_length(fixture.sequences, batch.n_sequences, fixture.scratch);
    assert_int_equal(dacp_init(&dacp, &batch, row->rule), 0);
    is_placed = dacp_place(&dacp, &deal, placements);
    for (size_t k = 0; is_placed && k < deal.end; k++) {
        got[k] = placements[k].group_size > 1 ? 'D' : (char)('0' + placements[k].group_first);
    }
    assert_string_equal(got, row->wanted);
    fixture_deinit(&fixture);
}

static void test_dacp_place__examples(void **state)
{
    static const struct row rows[] = {
        /* Ties go to the lower rank; each next one to the least loaded, which has most room too. */
        {2, 100, 1, LOAD, {10, 20, 30}, "010"},
        {2, 100, 1, ROOM, {10, 20, 30}, "010"},
        {3, 100, 1, LOAD, {10, 20, 30, 31, 32}, "01201"},
        /* Sorted ascending, whatever the order of the batch; equal lengths by sample. */
        {2, 100, 1, LOAD, {30, 20, 20, 10}, "1100"},
        /* A full micro-batch fits exactly. */
        {2, 100, 1, LOAD, {50, 50, 50, 50}, "0101"},
        /* Longer than any room, but half of it fits on both. */
        {2, 100, 1, LOAD, {10, 20, 150}, "01D"},
        {2, 100, 1, LOAD, {60, 60, 80}, "01D"},
        /*
         * 50 and 60 leave 50 and 40; 82 fits nowhere, nor its 41 on rank 1. 60 is rolled back: 20
         * and 70; 41 does not fit on rank 0, so 50 is rolled back too: 45 and 45, and 41 fits.
         */
        {2, 100, 1, LOAD, {50, 60, 82}, "DDD"},
        /*
         * 82 after twice 60: rank 0, the lower of two equally full, gives up its own, 70 and 10,
         * then rank 1: 40 and 40. No local is left, and 41 does not fit.
         */
        {2, 100, 1, LOAD, {60, 60, 82}, ""},
        /* Of equals the lowest sample is rolled back: 30 0, 30 1, 30 0, and 45 does not fit
           into 40. */
        {2, 100, 1, LOAD, {30, 30, 30, 90}, "D10D"},
        /* One rank: nothing can be distributed. */
        {1, 100, 1, LOAD, {50, 50}, "00"},
        {1, 100, 1, LOAD, {50, 51}, ""},
        /* A shard as large as its slot gains nothing: 64 tokens with align 64 are 64 either way. */
        {2, 128, 64, LOAD, {64, 64, 64, 64}, "0101"},
        {2, 128, 64, LOAD, {64, 64, 64, 64, 64}, ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_message("# row %zu\n", i);
        check_row(&rows[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dacp_place__examples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

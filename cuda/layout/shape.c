/*
 * Reads a micro-batch: groups by descending size, in each its sequences, each one segment or two.
 * Whether a shard is zigzag shows in the plan itself (two adjacent segments of one sample), and the
 * chunk's size is the slot's, so neither the job nor its alignment is needed. Everything later
 * steps take for granted is checked here, since a plan may come from anywhere. Pure, any thread.
 */
#include "shape.h"

#include <inttypes.h>
#include <string.h>

#include "ckd.h"

/* Segments of the sequence that starts at `i`. */
static uint32_t count_segments(const struct shape *shape, uint32_t i)
{
    const struct skrull_segment *first = &shape->segments[i];

    return first->group_size > 1 && i + 1 < shape->n_segments && first[1].sample == first->sample
               ? 2
               : 1;
}

struct shape_sequence shape_sequence_at(const struct shape *shape, uint32_t i_segment)
{
    const struct skrull_segment *first = &shape->segments[i_segment];
    uint32_t n_segments = count_segments(shape, i_segment);

    return (struct shape_sequence){.segments = first,
                                   .n_segments = n_segments,
                                   .chunk_rows = first->padded_tokens,
                                   .n_chunks = first->group_size * n_segments,
                                   .member = shape->data_rank - first->group_first};
}

uint32_t shape_chunk_member(const struct shape_sequence *sequence, uint32_t i_chunk,
                            uint32_t *ret_i_segment)
{
    bool is_second = sequence->n_segments == 2 && i_chunk >= sequence->n_chunks / 2;

    *ret_i_segment = is_second;
    return is_second ? sequence->n_chunks - 1 - i_chunk : i_chunk;
}

uint32_t shape_member_chunk(const struct shape_sequence *sequence, uint32_t member,
                            uint32_t i_segment)
{
    return i_segment == 0 ? member : sequence->n_chunks - 1 - member;
}

uint32_t shape_chunk_tokens(const struct shape_sequence *sequence, uint32_t i_chunk,
                            uint32_t *ret_n_tokens)
{
    uint64_t length = sequence->segments[0].sequence_length;
    uint64_t begin = (uint64_t)i_chunk * sequence->chunk_rows, end = begin + sequence->chunk_rows;

    begin = begin < length ? begin : length;
    end = end < length ? end : length;
    *ret_n_tokens = (uint32_t)(end - begin);
    return (uint32_t)begin;
}

/* Where a fault is, for messages. */
struct place {
    const struct skrull_plan *plan;
    const struct shape *shape;
    uint32_t i_segment;
};

static int fault(const struct place *place, struct skrull_error *err, const char *what)
{
    const struct skrull_segment *segment = &place->shape->segments[place->i_segment];

    return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                            "plan: data rank %" PRIu32 ", micro-batch %" PRIu32 ", segment %" PRIu32
                            " (sample %" PRIu64 "): %s",
                            place->shape->data_rank, place->shape->i_micro_batch, place->i_segment,
                            segment->sample, what);
}

/* The group of one segment by itself. */
static int check_group(const struct place *place, struct skrull_error *err)
{
    const struct skrull_segment *segment = &place->shape->segments[place->i_segment];
    uint64_t first = segment->group_first, size = segment->group_size;
    uint64_t n_ranks = (uint64_t)place->plan->dp * place->plan->cp;
    uint64_t rank = place->shape->data_rank;

    if (size == 0 || first % size != 0 || first + size > n_ranks) {
        return fault(place, err, "its group is not an aligned part of the data ranks");
    }
    if (rank < first || rank >= first + size) {
        return fault(place, err, "its group does not hold this data rank");
    }
    return 0;
}

/* The shape of one sequence: every segment is exactly the chunk that its place says. */
static int check_shard(const struct place *place, const struct shape_sequence *sequence,
                       struct skrull_error *err)
{
    const struct skrull_segment *first = sequence->segments;
    uint64_t held = (uint64_t)sequence->chunk_rows * first->group_size * sequence->n_segments;

    if (first->sequence_length == 0 || held < first->sequence_length || held > INT32_MAX) {
        return fault(place, err, "slots of its group hold less than the sequence, or 2^31 tokens");
    }
    if (!(first->loss_weight >= 0.0 && first->loss_weight <= 1.0)) {
        return fault(place, err, "its loss weight is not between 0 and 1");
    }
    for (uint32_t i = 0; i < sequence->n_segments; i++) {
        const struct skrull_segment *segment = &first[i];
        uint32_t i_chunk = shape_member_chunk(sequence, sequence->member, i), n_tokens;
        uint32_t begin = shape_chunk_tokens(sequence, i_chunk, &n_tokens);

        if (segment->token_begin != begin || segment->token_end != begin + n_tokens ||
            segment->padded_tokens != sequence->chunk_rows) {
            return fault(place, err, "its tokens are not those of its chunk");
        }
        if (segment->sequence_length != first->sequence_length ||
            segment->group_first != first->group_first ||
            segment->group_size != first->group_size) {
            return fault(place, err, "two chunks of a sequence differ in length or group");
        }
    }
    return 0;
}

/* The order against the sequence before. */
static int check_order(const struct place *place, const struct skrull_segment *before,
                       struct skrull_error *err)
{
    const struct skrull_segment *segment = &place->shape->segments[place->i_segment];

    if (before->group_size == segment->group_size) {
        return before->sample < segment->sample
                   ? 0
                   : fault(place, err, "samples of a group do not ascend");
    }
    /* Aligned groups around one rank, sizes of which divide each other, are nested. */
    return before->group_size % segment->group_size == 0
               ? 0
               : fault(place, err, "its group's size does not divide that of the group before");
}

/* The group to add a sequence to: the last one, or the next. */
static struct shape_group *group_for(struct shape *shape, const struct shape_sequence *sequence)
{
    uint32_t size = sequence->segments[0].group_size;
    struct shape_group *group;

    if (size == 1) {
        return &shape->groups[shape->n_groups];
    }
    if (shape->n_groups > 0 && shape->groups[shape->n_groups - 1].size == size) {
        return &shape->groups[shape->n_groups - 1];
    }
    group = &shape->groups[shape->n_groups++];
    group->first_rank = sequence->segments[0].group_first;
    group->size = size;
    group->member = sequence->member;
    return group;
}

/* Counts a checked sequence; 32 bits are enough, or it says so. */
static int add_sequence(struct shape *shape, const struct shape_sequence *sequence,
                        struct skrull_error *err)
{
    struct shape_group *group = group_for(shape, sequence);
    uint64_t rows = (uint64_t)sequence->chunk_rows * sequence->n_segments;
    uint64_t gathered = group->gathered_rows + (uint64_t)sequence->chunk_rows * sequence->n_chunks;

    if (shape->rows + rows > INT32_MAX || gathered > INT32_MAX) {
        return skrull_error_set(err, SKRULL_ERR_RESOURCE_EXHAUSTED,
                                "plan: data rank %" PRIu32 ", micro-batch %" PRIu32
                                ": a buffer would have 2^31 rows or more; lower "
                                "batch.bucket_tokens",
                                shape->data_rank, shape->i_micro_batch);
    }
    for (uint32_t i = 0; i < sequence->n_segments; i++) {
        uint32_t n_tokens = sequence->segments[i].token_end - sequence->segments[i].token_begin;

        group->tokens += n_tokens;
        shape->tokens += n_tokens;
    }
    group->n_sequences++;
    group->n_ranges += sequence->n_segments;
    group->rows += (uint32_t)rows;
    group->gathered_rows = (uint32_t)gathered;
    shape->n_sequences++;
    shape->rows += (uint32_t)rows;
    return 0;
}

/* Reads the sequence that starts at `place`; `before`: the first segment of the one before, or
 * NULL. */
static int read_sequence(const struct place *place, struct shape *shape,
                         const struct skrull_segment *before, struct shape_sequence *ret_sequence,
                         struct skrull_error *err)
{
    struct shape_sequence sequence;
    int rc = check_group(place, err);

    if (rc == 0 && before) {
        rc = check_order(place, before, err);
    }
    if (rc < 0) {
        return rc;
    }
    sequence = shape_sequence_at(shape, place->i_segment);
    rc = check_shard(place, &sequence, err);
    if (rc == 0) {
        rc = add_sequence(shape, &sequence, err);
    }
    *ret_sequence = sequence;
    return rc;
}

static int read_sequences(const struct skrull_plan *plan, struct shape *shape,
                          struct skrull_error *err)
{
    struct place place = {.plan = plan, .shape = shape};
    struct shape_sequence sequence = {0};

    while (place.i_segment < shape->n_segments) {
        int rc = read_sequence(&place, shape, sequence.segments, &sequence, err);

        if (rc < 0) {
            return rc;
        }
        place.i_segment += sequence.n_segments;
    }
    return 0;
}

int shape_read(const struct skrull_plan *plan, size_t i_rank, uint32_t i_micro_batch,
               struct shape *ret_shape, struct skrull_error *err)
{
    const struct skrull_micro_batch *micro_batch;
    const struct skrull_rank *rank;
    struct shape shape;
    size_t place, end;
    int rc;

    if (i_rank >= plan->n_ranks || i_micro_batch >= plan->ranks[i_rank].n_micro_batches) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "plan: no micro-batch %" PRIu32 " of rank %zu of %zu",
                                i_micro_batch, i_rank, plan->n_ranks);
    }
    rank = &plan->ranks[i_rank];
    if (ckd_add(&place, rank->first_micro_batch, (size_t)i_micro_batch) ||
        place >= plan->n_micro_batches) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "plan: micro-batches of data rank %" PRIu32 " lie outside it",
                                rank->data_rank);
    }
    micro_batch = &plan->micro_batches[place];
    if (ckd_add(&end, micro_batch->first_segment, (size_t)micro_batch->n_segments) ||
        end > plan->n_segments || micro_batch->dummy != (micro_batch->n_segments == 0)) {
        return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT,
                                "plan: data rank %" PRIu32 ", micro-batch %" PRIu32
                                ": its segments lie outside the plan, or it is wrongly (no) dummy",
                                rank->data_rank, i_micro_batch);
    }
    memset(&shape, 0, sizeof(shape));
    shape.data_rank = rank->data_rank;
    shape.i_micro_batch = i_micro_batch;
    shape.dummy = micro_batch->dummy;
    shape.segments = plan->segments ? plan->segments + micro_batch->first_segment : NULL;
    shape.n_segments = micro_batch->n_segments;
    rc = read_sequences(plan, &shape, err);
    if (rc < 0) {
        return rc;
    }
    *ret_shape = shape;
    return 0;
}

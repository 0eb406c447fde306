/*
 * The shapes that kernels of attention are held to, on every device: forward, or backward. Under a
 * sanitizer a few small ones.
 */
#pragma once

#include <stdbool.h>

/* A batch of all that a plan can put on the two sides: every head dimension, ratio of heads, mask
 * and dtype, rows dense and apart. */
void attention_matrix_mixed(bool is_backward);

/* Sequences one row below, at and above every size that a kernel tiles by. */
void attention_matrix_tile_edges(bool is_backward);

/* Whole sequences of up to 2,048 tokens. */
void attention_matrix_whole(bool is_backward);

/* The last 128 queries of 16,384 tokens against all keys, and all queries against 128 keys. */
void attention_matrix_long(bool is_backward);

/* No sequences, no rows on either side. */
void attention_matrix_nothing(bool is_backward);

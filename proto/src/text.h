/* Text that a user sent: is it fit for a field, and how does a message quote it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TEXT_CLIP_SIZE 64

/* Bytes of the well-formed UTF-8 character at `text` (NUL-terminated); 0: its end, or none. */
size_t text_character_len(const char *text);

/* True: well-formed UTF-8 without control characters (C0, DEL, C1). */
bool text_is_plain(const char *text);

/* Copies `text` into `ret` for a message: what is not plain becomes '?', a long one ends in "...".
 * Returns `ret`. */
const char *text_clip(const char *text, char ret[TEXT_CLIP_SIZE]);

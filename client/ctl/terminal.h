/* What standard output can show. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct terminal {
    size_t width; /* columns, 40 to 400 */
    bool is_utf8;
    bool has_colour;
};

/* Asks the environment: the terminal's size or COLUMNS, the locale, NO_COLOR, TERM. */
struct terminal terminal_of_stdout(void);

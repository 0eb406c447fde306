/* The terminal behind standard output. Where there is none: 100 columns, no colour. */
#include "terminal.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_WIDTH 100
#define MIN_WIDTH 40
#define MAX_WIDTH 400

static size_t width_of(bool is_terminal)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    size_t width = DEFAULT_WIDTH;

    if (columns && columns[0]) {
        width = strtoul(columns, NULL, 10);
    } else if (is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col) {
        width = size.ws_col;
    }
    if (width < MIN_WIDTH) {
        return MIN_WIDTH;
    }
    return width < MAX_WIDTH ? width : MAX_WIDTH;
}

struct terminal terminal_of_stdout(void)
{
    bool is_terminal = isatty(STDOUT_FILENO) == 1;
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

    return (struct terminal){
        .width = width_of(is_terminal),
        .is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
        .has_colour =
            is_terminal && !(no_colour && no_colour[0]) && term && strcmp(term, "dumb") != 0,
    };
}

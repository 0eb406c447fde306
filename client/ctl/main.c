/* skrullctl: parses its words, runs one verb, and makes sure that what it printed has arrived. */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "command.h"
#include "ctl.h"
#include "parse.h"

int main(int argc, char **argv)
{
    struct ctl ctl = {0};
    int status = CTL_DONE;

    map_guard_install();
    (void)setlocale(LC_CTYPE, ""); /* which characters the terminal has; numbers stay as they are */
    switch (parse_arguments(&ctl, argc > 0 ? (size_t)argc - 1 : 0,
                            (const char *const *)(const void *)(argv + 1), &status)) {
    case PARSE_HELP:
        command_help(ctl.command);
        break;
    case PARSE_VERSION:
        (void)printf("skrullctl %s\n", SKRULL_VERSION);
        break;
    case PARSE_WRONG:
        break;
    case PARSE_RUN:
        status = ctl.command->run(&ctl);
        break;
    }
    skrull_client_free(ctl.client);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        (void)fprintf(stderr, "skrullctl: standard output: %s\n", strerror(errno));
        return status == CTL_DONE ? CTL_FAILED : status;
    }
    return status;
}

/* argv -> struct ctl. */
#pragma once

#include "ctl.h"

enum parse_outcome { PARSE_RUN, PARSE_HELP, PARSE_VERSION, PARSE_WRONG };

/*
 * Fills `ctl` from the words after the program's name. PARSE_HELP: of ctl->command, or of the
 * program where that is NULL. PARSE_WRONG: said on standard error; *ret_status is the exit status.
 */
enum parse_outcome parse_arguments(struct ctl *ctl, size_t n_words, const char *const *words,
                                   int *ret_status);

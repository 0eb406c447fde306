/* The functions behind the verbs, declared from the table. Each returns the exit status. */
#pragma once

struct ctl;

#define COMMAND(function, ...) int function(struct ctl *ctl);
#define LATER(verb, synopsis, summary)
#include "commands.def"
#undef COMMAND
#undef LATER

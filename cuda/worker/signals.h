/* Ends of a worker that come from outside, with a message all the same. */
#pragma once

#include <stdint.h>

/* SIGTERM, by which launchers end the ranks that are left, and the alarm below say so and end. */
void signals_catch(void);

/* This rank says why it ends and is about to: a SIGTERM that was to be caught adds nothing now. */
void signals_said(void);

/* Ends the process with a message unless it is called again in time; 0: no alarm. */
void signals_alarm(uint64_t ms);

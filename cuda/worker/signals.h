/* Ends of a worker that come from outside, with a message all the same. */
#pragma once

#include <stdint.h>

/* SIGTERM, by which launchers end the ranks that are left, and the alarm below say so and end. */
void signals_catch(void);

/* Around a message that says why this rank ends: what was to be caught adds nothing to it;
 * afterwards it ends the process silently. */
void signals_saying(void);
void signals_said(void);

/* Ends the process with a message unless it is called again in time; 0: no alarm. */
void signals_alarm(uint64_t ms);

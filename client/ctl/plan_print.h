/* A plan on standard output. */
#pragma once

#include <skrull/plan.h>

#include "ctl.h"

/* In ctl's format: a head and a row a rank (table), a row a micro-batch (wide, csv), or JSON.
 * Returns the exit status. */
int plan_print(const struct ctl *ctl, const struct skrull_plan *plan);

/* The head: what it is, its time and its bound; two lines. */
void plan_print_head(const struct skrull_plan *plan);

/* "12.345" milliseconds. */
#define PLAN_MS_SIZE 32
const char *plan_ms(int64_t ns, char text[PLAN_MS_SIZE]);

/* How far above the bound, "3.21 %"; "-" where there is no bound. */
const char *plan_gap(int64_t iteration_ns, int64_t bound_ns, char text[PLAN_MS_SIZE]);

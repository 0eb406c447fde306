/* Faults that would change training, to be planted into a rank before its first step. */
#pragma once

#include "training.h"

struct fault {
    const char *name;
    void (*plant)(struct training *training);
};

/* All of them; `name` NULL at the end. */
extern const struct fault faults[];

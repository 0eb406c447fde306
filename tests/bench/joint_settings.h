/* The paper's six settings, and what the joint solver must reach on each. */
#pragma once

#include <skrull/planner.h>

struct joint_setting {
    const char *preset, *list;
    uint32_t dp, cp, bucket_tokens;
    size_t n_sequences;
    /* Largest mean gaps to the bound and to the simple bound in percent, fixed and elastic. */
    double gap[2], high_gap[2], simple_gap[2];
};

extern const struct joint_setting joint_settings[];
extern const size_t n_joint_settings;

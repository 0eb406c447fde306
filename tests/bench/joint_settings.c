/* The paper's six settings (arXiv 2505.19609, section 5), and limits measured with prototypes. */
#include "bench/joint_settings.h"

const struct joint_setting joint_settings[] = {
    {"qwen2.5-0.5b", "wikipedia", 4, 8, 26624, 256, {1.5, 0.9}, {1.5, 0.9}, {3.2, 3.2}},
    {"qwen2.5-0.5b", "lmsyschat1m", 4, 8, 26624, 256, {1.5, 0.9}, {1.5, 0.9}, {3.2, 5.5}},
    {"qwen2.5-0.5b", "chatqa2", 4, 8, 26624, 256, {1.5, 0.9}, {1.5, 0.9}, {1.5, 1.5}},
    {"qwen2.5-7b", "wikipedia", 4, 8, 13312, 256, {1.5, 0.9}, {1.5, 0.9}, {3.2, 3.2}},
    {"qwen2.5-7b", "lmsyschat1m", 4, 8, 13312, 256, {1.5, 0.9}, {1.5, 0.9}, {3.2, 3.2}},
    {"qwen2.5-7b", "chatqa2", 2, 16, 13312, 80, {4.5, 6.0}, {4.1, 4.6}, {15.5, 6.0}},
};

const size_t n_joint_settings = sizeof(joint_settings) / sizeof(joint_settings[0]);

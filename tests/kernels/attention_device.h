/*
 * Cases of attention on a device: tensors of a dtype in its memory, rows as far apart as wanted,
 * NaN between them and wherever the kernels are to write. Gradients start from known values.
 */
#pragma once

#include "kernels/attention_case.h"
#include "kernels/device.h"

struct attention_device {
    const struct device *device;
    const struct attention_case *c;
    enum skrull_dtype dtype;
    size_t gap;                              /* elements between rows of q, k, v, out, dout */
    struct skrull_attention_backward params; /* out, lse: NaN, or the answer if for backward */
    void *owned[20];
    size_t n_owned;
};

/* What a case is run with. */
struct attention_run {
    enum skrull_dtype dtype;
    size_t gap;
    bool is_backward, has_dlse;
    bool is_brief; /* in one order of threads only: */
    int order;
};

void attention_device_init(struct attention_device *t, const struct device *device,
                           const struct attention_case *c, const struct attention_run *run);
void attention_device_deinit(struct attention_device *t);

/* Runs a case on a device and holds the outputs against the answer; several times, on the shim in
 * its three orders of threads: all give the same bits, and no bank conflict. */
void attention_device_hold(const struct device *device, const struct attention_case *c,
                           const struct attention_run *run);

/* The outputs against the answer. */
void attention_device_check_forward(const struct attention_device *t);
void attention_device_check_backward(const struct attention_device *t);

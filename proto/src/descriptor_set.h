/* The schema of all our services as protoc has it: a google.protobuf.FileDescriptorSet with every
 * import, made at build time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

extern const uint8_t descriptor_set[]; /* [descriptor_set_len] */
extern const size_t descriptor_set_len;

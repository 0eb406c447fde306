/* grpc.reflection, v1 and v1alpha: which services there are, and their schema. Loop thread only. */
#pragma once

#include <skrull/error.h>

struct reflector;

int reflector_new(struct reflector **ret_reflector, struct skrull_error *err);

/* No stream may be open. NULL is fine. */
void reflector_free(struct reflector *reflector);

/* Ends every stream, after the answer that is in flight. NULL is fine. */
void reflector_drain(struct reflector *reflector);

/* methods.def as a table. */
#include "rpc/method.h"

#include "rpc/handlers.h"
#include "rpc/health.h"

const struct method method_table[] = {
#define X(service, method, handler, max_bytes)                                                     \
    {"/" service "/" #method, #method, handler, max_bytes},
#include "rpc/methods.def"
#undef X
};

size_t method_count(void)
{
    return sizeof(method_table) / sizeof(method_table[0]);
}

/*
 * gRPC 1.51 writes unstructured lines to standard error unless it is given a function. Later
 * releases have dropped the hook and log through absl.
 */
#include "rpc/grpc_log.h"

#include <string.h>

#include <grpc/support/log.h>

#include "base/log.h"

/* Above all that gRPC logs. */
#define NOTHING ((gpr_log_severity)(GPR_LOG_SEVERITY_ERROR + 1))

static void on_line(gpr_log_func_args *args)
{
    const char *slash = strrchr(args->file, '/');
    enum log_level level =
        args->severity == GPR_LOG_SEVERITY_ERROR ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG;

    log_event(level, "grpc", LOG_TEXT("file", slash ? slash + 1 : args->file),
              LOG_U64("line", (uint64_t)args->line), LOG_TEXT("message", args->message));
}

void grpc_log_install(bool is_verbose)
{
    gpr_set_log_function(on_line);
    gpr_set_log_verbosity(is_verbose ? GPR_LOG_SEVERITY_INFO : NOTHING);
}

void grpc_log_show_errors(bool is_verbose)
{
    gpr_set_log_verbosity(is_verbose ? GPR_LOG_SEVERITY_INFO : GPR_LOG_SEVERITY_ERROR);
}

/* completion: a script for a shell, on standard output. */
#include <string.h>

#include "cmd.h"
#include "completion.h"
#include "ctl.h"

int cmd_completion(struct ctl *ctl)
{
    static const struct {
        const char *shell;
        void (*write)(FILE *out);
    } shells[] = {
        {"bash", completion_write_bash},
        {"zsh", completion_write_zsh},
        {"fish", completion_write_fish},
    };

    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(ctl->operands[0], shells[i].shell) == 0) {
            shells[i].write(stdout);
            return CTL_DONE;
        }
    }
    return ctl_misuse(ctl, "%.40s: bash, zsh and fish are allowed", ctl->operands[0]);
}

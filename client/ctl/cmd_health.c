/* health: whether the daemon serves. */
#include <stdio.h>

#include "cmd.h"
#include "codec_text.h"
#include "ctl.h"

int cmd_health(struct ctl *ctl)
{
    struct skrull_client *client;
    struct skrull_error err;
    char *text = NULL;
    int r, status = ctl_connect(ctl, &client);

    if (status != CTL_DONE) {
        return status;
    }
    r = skrull_client_health(client, &err);
    if (r < 0) {
        return ctl_fail(ctl, &err);
    }
    if (ctl->format == CTL_JSON) {
        int e = codec_text_health(r == 0 ? RPC_HEALTH_SERVING : RPC_HEALTH_NOT_SERVING, true, &text,
                                  &err);

        status = ctl_print_json(ctl, e, text, &err);
    } else {
        (void)printf("%s %s\n", skrull_client_server(client), r == 0 ? "serving" : "not serving");
    }
    if (status == CTL_DONE && r == SKRULL_NOT_SERVING) {
        (void)skrull_error_set(&err, SKRULL_ERR_FAILED_PRECONDITION,
                               "skrulld at %s is there but does not serve",
                               skrull_client_server(client));
        return ctl_fail(ctl, &err);
    }
    return status;
}

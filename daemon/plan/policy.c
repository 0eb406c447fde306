/*
 * The table of policies, from policies.def: lookup, listing and option checks all walk it.
 */
#include "plan/policy.h"

#include <stdio.h>
#include <string.h>

#define POLICY(policy, which, text)                                                                \
    {.name = #policy,                                                                              \
     .summary = (text),                                                                            \
     .sizes = POLICY_SIZES_##which,                                                                \
     .place = policy_##policy##_place},
#define PLANNED(policy) {.name = #policy},
static const struct policy policies[] = {
#include "plan/policies.def"
};
#undef POLICY
#undef PLANNED

#define POLICY(policy, which, text) #policy,
#define PLANNED(policy)
static const char *const names[] = {
#include "plan/policies.def"
    NULL};
#undef POLICY
#undef PLANNED

#define N_POLICIES (sizeof(policies) / sizeof(policies[0]))
#define DEFAULT_POLICY "joint"

const char *const *skrull_planner_policies(void)
{
    return names;
}

static int refuse_unknown(const char *name, struct skrull_error *err)
{
    char list[300] = "";
    size_t len = 0;

    for (size_t i = 0; names[i] && len < sizeof(list); i++) {
        len +=
            (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    return skrull_error_because(err, SKRULL_ERR_INVALID_ARGUMENT, SKRULL_REASON_POLICY_UNKNOWN, 0,
                                "policy: unknown policy %.64s, there are: %s", name, list);
}

int policy_find(const char *name, const struct policy **ret_policy, struct skrull_error *err)
{
    if (!name || !*name) {
        name = DEFAULT_POLICY;
    }
    for (size_t i = 0; i < N_POLICIES; i++) {
        if (strcmp(policies[i].name, name) != 0) {
            continue;
        }
        if (!policies[i].place) {
            return skrull_error_set(err, SKRULL_ERR_INVALID_ARGUMENT, "policy: %s is not built yet",
                                    name);
        }
        *ret_policy = &policies[i];
        return 0;
    }
    return refuse_unknown(name, err);
}

int policy_degrees(const struct skrull_planner_options *options, struct degrees *ret_degrees,
                   struct skrull_error *err)
{
    const struct policy *policy = NULL;
    const int rc = policy_find(options->policy, &policy, err);

    if (rc || !policy) {
        return rc;
    }
    return policy->sizes == POLICY_SIZES_ALL ? degrees_of_job(options, ret_degrees, err)
                                             : degrees_of_policy(options, ret_degrees, err);
}

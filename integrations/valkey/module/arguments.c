/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The arguments of `loadmodule`. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "module.h"

/* Takes a whole number in digits alone. */
static int set_number(uint64_t *number, const char *value, uint64_t most) {
    char *end;
    errno = 0;
    unsigned long long given = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || errno || given > most) return 0;
    *number = given;
    return 1;
}

static int set_keepalive(const char *value) {
    uint64_t seconds;
    if (!set_number(&seconds, value, INT64_MAX / 1000)) return 0;
    module.keepalive_ms = 1000 * (int64_t)seconds;
    return 1;
}

/* Takes one revocation list more. */
static int add_list(const char *file) {
    smt_server_options *options = &module.options;
    size_t count = options->revocation_lists_count;
    const char **lists = realloc((void *)options->revocation_lists, (count + 1) * sizeof(*lists));
    if (!lists) return 0;
    lists[count] = file;
    options->revocation_lists = lists;
    options->revocation_lists_count = count + 1;
    return 1;
}

/* Nodes of a cluster send clients on to the TCP ports of others. */
static int may_be_in_cluster;

static int set_choice(const char *name, const char *value) {
    smt_server_options *options = &module.options;
    char *copy = strdup(value);
    if (!copy) return 0;
    if (!strcasecmp(name, "listen"))
        options->address = copy;
    else if (!strcasecmp(name, "cert"))
        options->certificate = copy;
    else if (!strcasecmp(name, "key"))
        options->key = copy;
    else if (!strcasecmp(name, "ca"))
        options->authority = copy;
    else if (!strcasecmp(name, "crl"))
        return add_list(copy);
    else if (!strcasecmp(name, "state"))
        options->state = copy;
    else if (!strcasecmp(name, "sessions"))
        return set_number(&options->sessions_max, value, UINT64_MAX);
    else if (!strcasecmp(name, "memory"))
        return set_number(&options->memory_max, value, UINT64_MAX);
    else if (!strcasecmp(name, "keepalive"))
        return set_keepalive(value);
    else if (!strcasecmp(name, "auth-clients") && !strcasecmp(value, "yes"))
        options->client_auth = SMT_CLIENT_AUTH_REQUIRED;
    else if (!strcasecmp(name, "auth-clients") && !strcasecmp(value, "optional"))
        options->client_auth = SMT_CLIENT_AUTH_OPTIONAL;
    else if (!strcasecmp(name, "auth-clients") && !strcasecmp(value, "no"))
        options->client_auth = SMT_CLIENT_AUTH_NONE;
    else if (!strcasecmp(name, "distrusted") && !strcasecmp(value, "end"))
        module.distrusted = DISTRUSTED_END;
    else if (!strcasecmp(name, "distrusted") && !strcasecmp(value, "finish"))
        module.distrusted = DISTRUSTED_FINISH;
    else if (!strcasecmp(name, "distrusted") && !strcasecmp(value, "keep"))
        module.distrusted = DISTRUSTED_KEEP;
    else if (!strcasecmp(name, "user") && !strcasecmp(value, "cn"))
        module.user = USER_COMMON_NAME;
    else if (!strcasecmp(name, "user") && !strcasecmp(value, "dns"))
        module.user = USER_DNS_NAME;
    else if (!strcasecmp(name, "user") && !strcasecmp(value, "no"))
        module.user = USER_NONE;
    else if (!strcasecmp(name, "cluster-by-tcp") && !strcasecmp(value, "yes"))
        may_be_in_cluster = 1;
    else if (!strcasecmp(name, "cluster-by-tcp") && !strcasecmp(value, "no"))
        may_be_in_cluster = 0;
    else
        return 0;
    return 1;
}

int arguments_read(module_context *context, module_string **arguments, int count) {
    module.options.client_auth = SMT_CLIENT_AUTH_REQUIRED;
    module.keepalive_ms = 300 * 1000;
    for (int i = 0; i + 1 < count; i += 2) {
        const char *name = module.api.StringPtrLen(arguments[i], NULL);
        const char *value = module.api.StringPtrLen(arguments[i + 1], NULL);
        if (!set_choice(name, value)) {
            module.api.Log(context, "warning", "caller: no such argument: %s %s", name, value);
            return 0;
        }
    }
    const smt_server_options *options = &module.options;
    if (count % 2 || !options->address || !options->certificate || !options->key) {
        module.api.Log(context, "warning",
                       "caller: needs: loadmodule smt.so listen HOST:PORT cert FILE key FILE "
                       "ca FILE [crl FILE]... [distrusted end|finish|keep] "
                       "[auth-clients yes|optional|no] [user cn|dns|no] [state FILE] "
                       "[keepalive SECONDS] [sessions COUNT] [memory BYTES] [cluster-by-tcp yes|no]");
        return 0;
    }
    if (!options->authority && options->client_auth != SMT_CLIENT_AUTH_NONE) {
        module.api.Log(context, "warning",
                       "caller: clients are asked for certificates, so `ca FILE` is needed, or "
                       "`auth-clients no`");
        return 0;
    }
    if (options->revocation_lists_count && options->client_auth == SMT_CLIENT_AUTH_NONE) {
        module.api.Log(context, "warning",
                       "caller: `crl` is for certificates of clients, which `auth-clients no` does "
                       "not ask for: leave one of them out");
        return 0;
    }
    if (module.user != USER_NONE && options->client_auth != SMT_CLIENT_AUTH_REQUIRED) {
        module.api.Log(context, "warning", "caller: `user` needs `auth-clients yes`");
        return 0;
    }
    if (module.api.GetContextFlags(context) & MODULE_FLAG_CLUSTER) {
        if (!may_be_in_cluster) {
            module.api.Log(context, "warning",
                           "caller: with cluster-enabled, MOVED, ASK and CLUSTER SLOTS name TCP "
                           "ports, and clients of SMT would go on there without encryption. Leave "
                           "cluster-enabled or this module out, or say `cluster-by-tcp yes` where "
                           "TCP is safe");
            return 0;
        }
        module.api.Log(context, "warning",
                       "cluster-by-tcp: clients of SMT are sent on to TCP ports of this cluster");
    }
    return 1;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The module in Valkey: the server's functions, and what it tells in INFO. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "generation.h"
#include "module.h"

module_state module;

/* A function pointer of an object pointer, as POSIX permits. */
static void set_function(void *function, void *address) {
    memcpy(function, &address, sizeof(address));
}

/* Fills module.server. Returns the name that the server does not export. */
static const char *find_server(void) {
#define EXPORT(name)                                                                               \
    do {                                                                                           \
        void *address = dlsym(RTLD_DEFAULT, #name);                                                \
        if (!address) return #name;                                                                \
        set_function(&module.server.name, address);                                                \
    } while (0)
    EXPORT(connTypeRegister);
    EXPORT(connectionByType);
    EXPORT(listenerByType);
    EXPORT(acceptCommonHandler);
    EXPORT(aeSetBeforeSleepProc);
    EXPORT(aeSetDontWait);
    EXPORT(beforeSleep);
    return NULL;
}

/* ---- what the server tells ---- */

/* A client of SMT is the user that its certificate names, or nobody. */
static void client_changed(module_context *context, module_event event, uint64_t change,
                           void *data) {
    (void)event;
    session *s = module.accepting;
    if (change != MODULE_CLIENT_CONNECTED || !s) return;
    module_client *client = data;
    s->client = client->id;
    if (module.user == USER_NONE) return;
    if (s->name[0] && module.api.AuthenticateClientWithACLUser(context, s->name, strlen(s->name),
                                                               NULL, NULL, NULL) == MODULE_OK)
        return;
    module.api.Log(context, "notice",
                   "client %s:%d is closed: its certificate names no ACL user (%s)", s->ip, s->port,
                   s->name);
    module.api.DeauthenticateAndCloseClient(context, client->id);
}

void module_server_stops(module_context *context, module_event event, uint64_t change, void *data) {
    (void)context, (void)event, (void)change, (void)data;
    smt_endpoint *endpoint = module.endpoint;
    module.endpoint = NULL;
    smt_endpoint_close(endpoint);
}

void module_inform(module_info *info, int is_crash_report) {
    (void)is_crash_report;
    module.api.InfoAddSection(info, NULL);
    if (module.endpoint)
        module.api.InfoAddFieldULongLong(info, "port", smt_endpoint_port(module.endpoint));
    module.api.InfoAddFieldULongLong(info, "sessions", module.sessions);
    module.api.InfoAddFieldULongLong(info, "sessions_accepted", module.accepted);
    module.api.InfoAddFieldULongLong(info, "clients_refused", module.refused);
    module.api.InfoAddFieldULongLong(info, "sessions_broken", module.broken);
    module.api.InfoAddFieldULongLong(info, "sessions_distrusted", module.distrusted_count);
}

/* ---- entry ---- */

static int set_listener(module_context *context, const generation *generation) {
    connection_listener *listener = generation->listener(&module.server);
    char *colon = strrchr(module.options.address, ':');
    if (!listener || !colon) {
        module.api.Log(context, "warning", "caller: listen needs HOST:PORT");
        return 0;
    }
    module.addresses[0] = strndup(module.options.address, colon - module.options.address);
    listener->bindaddr = module.addresses;
    listener->bindaddr_count = 1;
    listener->port = atoi(colon + 1);
    listener->ct = module.type;
    return module.addresses[0] != NULL;
}

EXPORTED int ValkeyModule_OnLoad(module_context *context, module_string **arguments, int count) {
    const char *missing = api_find(context, "ValkeyModule_");
    if (missing) {
        if (module.api.Log)
            module.api.Log(context, "warning", "environment: modules of this server have no %s",
                           missing);
        return MODULE_ERR;
    }
    module.api.SetModuleAttribs(context, "smt", 1, MODULE_API_VERSION);
    int version = module.api.GetServerVersion();
    const generation *generation = generation_of(version);
    if (!generation) {
        module.api.Log(context, "warning",
                       "environment: this module is for " GENERATIONS_TEXT
                       ", and this one is %d.%d.%d: connection types have no stable interface",
                       version >> 16 & 0xff, version >> 8 & 0xff, version & 0xff);
        return MODULE_ERR;
    }
    missing = find_server();
    if (missing) {
        module.api.Log(context, "warning", "environment: this server does not export %s", missing);
        return MODULE_ERR;
    }
    if (!(module.api.GetContextFlags(context) & MODULE_FLAG_SERVER_STARTUP)) {
        module.api.Log(context, "warning",
                       "caller: connection types are registered when the server starts: use "
                       "`loadmodule` in valkey.conf, or --loadmodule");
        return MODULE_ERR;
    }
    const char *refusal = generation->refusal(&module.server);
    if (refusal) {
        module.api.Log(context, "warning", "environment: this server, Valkey %s, %s",
                       generation->text, refusal);
        return MODULE_ERR;
    }
    if (!arguments_read(context, arguments, count) || !reload_register(context)) return MODULE_ERR;
    module.api.SetModuleOptions(context, MODULE_OPTION_HANDLE_REPL_ASYNC_LOAD);
    module.type = generation->type;
    if (module.server.connTypeRegister(module.type) != C_OK || !set_listener(context, generation))
        return MODULE_ERR;
    module.api.SubscribeToServerEvent(context, (module_event){MODULE_EVENT_CLIENT_CHANGE, 1},
                                      client_changed);
    module.api.SubscribeToServerEvent(context, (module_event){MODULE_EVENT_SHUTDOWN, 1},
                                      module_server_stops);
    module.api.RegisterInfoFunc(context, module_inform);
    return MODULE_OK;
}

EXPORTED int ValkeyModule_OnUnload(module_context *context) {
    module.api.Log(context, "warning", "caller: a connection type cannot be unloaded");
    return MODULE_ERR;
}

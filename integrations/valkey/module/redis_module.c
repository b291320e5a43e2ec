/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The module in Redis 7.0: it gives modules no connection types, but calls of commands and a place
 * in its event loop.
 *
 * Commands run right before the loop sleeps, when the server propagates what modules have called and
 * then writes its append-only file. With such a file their replies leave behind that. */
#include <stdio.h>
#include <string.h>

#include "generation.h"
#include "listener.h"
#include "module.h"
#include "redis_api.h"
#include "redis_call.h"

redis_functions redis;
module_context *redis_context;
static int is_woken;

/* Fills `redis`. Returns the name that is missing, or NULL. */
static const char *find_functions(module_context *context) {
    api_get get = api_of(context);
#define FIND(name)                                                                                 \
    do {                                                                                           \
        if (get("RedisModule_" #name, &redis.name)) return #name;                                  \
    } while (0)
    FIND(Call);
    FIND(CallReplyProto);
    FIND(FreeCallReply);
    FIND(CreateString);
    FIND(FreeString);
    FIND(GetDetachedThreadSafeContext);
    FIND(GetModuleUserFromUserName);
    FIND(FreeModuleUser);
    FIND(SetContextUser);
    FIND(EventLoopAdd);
    FIND(EventLoopAddOneShot);
    FIND(AvoidReplicaTraffic);
    FIND(GetClientUserNameById);
    FIND(ACLCheckCommandPermissions);
    return NULL;
}

/* In a script that runs for long, and while a snapshot is loaded, the server calls this too, but not
 * what is done before it sleeps: nothing is executed in the midst of another command. */
static void endpoint_readable(int fd, void *data, int mask) {
    (void)fd, (void)data, (void)mask;
    if (module.endpoint) listener_receive();
}

static void woken(void *data) {
    (void)data;
    is_woken = 0;
}

/* Lets the loop sleep for no time. */
static void wake(void) {
    if (is_woken) return;
    is_woken = 1;
    redis.EventLoopAddOneShot(woken, NULL);
}

static void before_sleep(void) {
    smt_endpoint_cork(module.endpoint);
    /* While clients are paused nothing may be written, and the server holds all commands back. */
    int is_paused = redis.AvoidReplicaTraffic();
    if (!is_paused) redis_clients_execute();
    int has_file = module.api.GetContextFlags(redis_context) & REDIS_CONTEXT_AOF;
    if (!has_file) redis_clients_write();
    listener_end_turn();
    if (!is_paused && redis_clients_have_work()) wake();
}

static void after_sleep(void) {
    smt_endpoint_cork(module.endpoint);
    redis_clients_write();
    smt_endpoint_flush(module.endpoint);
}

static void loop_turns(module_context *context, module_event event, uint64_t change, void *data) {
    (void)context, (void)event, (void)data;
    if (!module.endpoint) return;
    if (change == REDIS_BEFORE_SLEEP) before_sleep();
    if (change == REDIS_AFTER_SLEEP) after_sleep();
}

static int start(module_context *context) {
    redis_context = redis.GetDetachedThreadSafeContext(context);
    module.server.acceptCommonHandler = redis_client_accept;
    module.type = &session_type_8_0;
    module.is_admin = redis_is_admin;
    connection_listener listener = {.bindaddr = module.addresses};
    if (listener_listen(&listener) != C_OK) return 0;
    if (redis.EventLoopAdd(listener.fd[0], REDIS_READABLE, endpoint_readable, NULL) != MODULE_OK) {
        module.api.Log(context, "warning", "environment: the event loop takes no descriptor");
        smt_endpoint_close(module.endpoint);
        module.endpoint = NULL;
        return 0;
    }
    module.api.SubscribeToServerEvent(context, (module_event){REDIS_EVENT_EVENTLOOP, 1},
                                      loop_turns);
    module.api.SubscribeToServerEvent(context, (module_event){MODULE_EVENT_SHUTDOWN, 1},
                                      module_server_stops);
    module.api.RegisterInfoFunc(context, module_inform);
    return 1;
}

EXPORTED int RedisModule_OnLoad(module_context *context, module_string **arguments, int count) {
    const char *lacking = api_find(context, "RedisModule_");
    if (!lacking) lacking = find_functions(context);
    if (module.api.SetModuleAttribs)
        module.api.SetModuleAttribs(context, "smt", 1, MODULE_API_VERSION);
    int version = module.api.GetServerVersion ? module.api.GetServerVersion() : 0;
    if (lacking || version >> 8 != 0x700) {
        if (module.api.Log)
            module.api.Log(context, "warning",
                           "environment: this module is for " GENERATIONS_TEXT
                           " and Redis 7.0 (from 7.0.6 on), and this one is %d.%d.%d%s%s",
                           version >> 16 & 0xff, version >> 8 & 0xff, version & 0xff,
                           lacking ? ", whose modules have no " : "", lacking ? lacking : "");
        return MODULE_ERR;
    }
    if (module.endpoint) {
        module.api.Log(context, "warning", "caller: the module is loaded already, with one listen address");
        return MODULE_ERR;
    }
    if (!arguments_read(context, arguments, count) || !reload_register(context) || !start(context))
        return MODULE_ERR;
    module.api.Log(context, "warning",
                   "SMT at port %d. Redis gives modules no connection types, hence clients over SMT "
                   "have no %s; CLIENT LIST does not show them, and their commands evict no keys",
                   (int)smt_endpoint_port(module.endpoint), redis_missing_text);
    return MODULE_OK;
}

EXPORTED int RedisModule_OnUnload(module_context *context) {
    module.api.Log(context, "warning", "caller: clients of SMT would be cut: stop the server");
    return MODULE_ERR;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Functions of the module API that Valkey and Redis share: they differ in the prefix of their names. */
#include <stdio.h>
#include <string.h>

#include "module.h"

api_get api_of(module_context *context) {
    api_get get;
    memcpy(&get, context, sizeof(get));
    return get;
}

const char *api_find(module_context *context, const char *prefix) {
    api_get get = api_of(context);
    char name[64];
#define FIND(function)                                                                             \
    do {                                                                                           \
        snprintf(name, sizeof(name), "%s%s", prefix, #function);                                   \
        if (get(name, &module.api.function)) return #function;                                     \
    } while (0)
    FIND(Log);
    FIND(SetModuleAttribs);
    FIND(SetModuleOptions);
    FIND(GetServerVersion);
    FIND(GetContextFlags);
    FIND(StringPtrLen);
    FIND(SubscribeToServerEvent);
    FIND(AuthenticateClientWithACLUser);
    FIND(DeauthenticateAndCloseClient);
    FIND(RegisterInfoFunc);
    FIND(InfoAddSection);
    FIND(InfoAddFieldULongLong);
    FIND(CreateCommand);
    FIND(WrongArity);
    FIND(ReplyWithLongLong);
    FIND(ReplyWithError);
    FIND(GetClientId);
    FIND(GetClientInfoById);
    FIND(GetCommand);
    snprintf(name, sizeof(name), "%s%s", prefix, "SetCommandACLCategories");
    get(name, &module.api.SetCommandACLCategories);
    return NULL;
}

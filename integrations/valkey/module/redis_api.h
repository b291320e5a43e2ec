/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The module API of Redis 7.0 (redismodule.h) beyond what Valkey is asked for. */
#ifndef REDIS_API_H
#define REDIS_API_H

#include <stddef.h>
#include <stdint.h>

#include "valkey_abi.h"

#define REDIS_EVENT_EVENTLOOP 15
#define REDIS_BEFORE_SLEEP 0
#define REDIS_AFTER_SLEEP 1
#define REDIS_READABLE 1

/* Bits of GetContextFlags. */
#define REDIS_CONTEXT_SLAVE (1 << 3)
#define REDIS_CONTEXT_READONLY (1 << 4)
#define REDIS_CONTEXT_CLUSTER (1 << 5)
#define REDIS_CONTEXT_AOF (1 << 6)

typedef struct redis_reply redis_reply;
typedef struct redis_user redis_user;

typedef struct redis_functions {
    redis_reply *(*Call)(module_context *, const char *name, const char *format, ...);
    const char *(*CallReplyProto)(redis_reply *, size_t *length);
    void (*FreeCallReply)(redis_reply *);
    module_string *(*CreateString)(module_context *, const char *bytes, size_t length);
    void (*FreeString)(module_context *, module_string *);
    module_context *(*GetDetachedThreadSafeContext)(module_context *);
    redis_user *(*GetModuleUserFromUserName)(module_string *);
    int (*FreeModuleUser)(redis_user *);
    void (*SetContextUser)(module_context *, const redis_user *);
    int (*EventLoopAdd)(int fd, int mask, void (*)(int fd, void *data, int mask), void *data);
    int (*EventLoopAddOneShot)(void (*)(void *data), void *data);
    int (*AvoidReplicaTraffic)(void);
    module_string *(*GetClientUserNameById)(module_context *, uint64_t client);
    int (*ACLCheckCommandPermissions)(redis_user *, module_string **words, int count);
} redis_functions;

/* Found by redis_module.c. */
extern redis_functions redis;
/* A context that is no client's, for calls. */
extern module_context *redis_context;

#endif

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A session as a client of Redis 7.0, which gives modules no connection types: the module reads
 * commands itself, and has them executed by RedisModule_Call.
 *
 * Flow: 1. bytes of a session are read before the loop sleeps  2. complete commands are executed
 * (redis_call.c)  3. their replies leave, with an append-only file in the next turn, when it is
 * written  4. the next bytes are read when all replies have left. */
#ifndef REDIS_CLIENT_H
#define REDIS_CLIENT_H

#include "command.h"
#include "session.h"

typedef struct redis_client {
    session *session;
    char user[NAME_MAX_LENGTH]; /* empty: nobody yet */
    int protocol;               /* 2 or 3 */
    uint8_t *query;             /* bytes of commands that were not executed */
    size_t query_length, query_capacity;
    command command;
    uint8_t *out; /* replies */
    size_t out_length, out_taken, out_capacity;
    int is_new;     /* its first user is not known yet */
    int is_stalled; /* there may be further commands in the query */
    int is_closing; /* behind the replies */
    int is_working;
    struct redis_client *next, *previous; /* among those that have replies or further commands */
} redis_client;

/* Takes a new session, in the place of the server's acceptCommonHandler. */
void redis_client_accept(connection *conn, client_flags flags, char *ip);
/* Executes commands of all clients that have some. */
void redis_clients_execute(void);
/* Sends replies, as far as there is room. */
void redis_clients_write(void);
/* Whether a further turn has something to do at once. */
int redis_clients_have_work(void);
/* Appends to the replies. */
void redis_client_reply(redis_client *c, const char *bytes, size_t length);

#endif

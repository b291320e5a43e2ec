/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "redis_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "redis_api.h"

/* Commands of a client that is more than calls: it has a transaction, a database, subscriptions, or
 * waits. A call of them would do nothing, or answer as if it had waited. */
static const char *const missing[] = {
    "MULTI",      "EXEC",       "DISCARD",      "WATCH",      "UNWATCH",  "SELECT",   "SUBSCRIBE",
    "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE",  "PUNSUBSCRIBE", "SUNSUBSCRIBE", "MONITOR", "SYNC",
    "PSYNC",      "REPLCONF",   "BLPOP",        "BRPOP",      "BLMOVE",   "BLMPOP",   "BRPOPLPUSH",
    "BZPOPMIN",   "BZPOPMAX",   "BZMPOP",       "WAIT",       "RESET",    "ASKING",   "READONLY",
    "READWRITE",
};
const char redis_missing_text[] =
    "MULTI, EXEC, DISCARD, WATCH, SELECT, SUBSCRIBE and its like, MONITOR, SYNC, BLPOP and other "
    "commands that block, XREAD BLOCK, WAIT, RESET, SCRIPT DEBUG, READONLY, ASKING, and CLIENT but "
    "for KILL, LIST, PAUSE, UNPAUSE, UNBLOCK";
/* Of CLIENT, what is not about the caller itself. */
static const char *const client_commands[] = {"KILL", "LIST", "PAUSE", "UNPAUSE", "UNBLOCK"};

static void reply_text(redis_client *c, const char *text) {
    redis_client_reply(c, text, strlen(text));
}

static const char *word(const redis_client *c, size_t index, size_t *length) {
    *length = c->command.words[index].length;
    return (const char *)c->query + c->command.words[index].at;
}

static int is_word(const redis_client *c, size_t index, const char *text) {
    size_t length;
    if (index >= c->command.count) return 0;
    const char *bytes = word(c, index, &length);
    return length == strlen(text) && !strncasecmp(bytes, text, length);
}

static int is_missing(const redis_client *c) {
    for (size_t i = 0; i < sizeof(missing) / sizeof(*missing); i++)
        if (is_word(c, 0, missing[i])) return 1;
    if (is_word(c, 0, "CLIENT")) {
        for (size_t i = 0; i < sizeof(client_commands) / sizeof(*client_commands); i++)
            if (is_word(c, 1, client_commands[i])) return 0;
        return 1;
    }
    if (is_word(c, 0, "SCRIPT")) return is_word(c, 1, "DEBUG");
    if (!is_word(c, 0, "XREAD") && !is_word(c, 0, "XREADGROUP")) return 0;
    /* Behind GROUP, a group and a consumer, which may have any names. */
    size_t first = is_word(c, 0, "XREADGROUP") ? 4 : 1;
    for (size_t i = first; i < c->command.count && !is_word(c, i, "STREAMS"); i++)
        if (is_word(c, i, "BLOCK")) return 1;
    return 0;
}

static void reply_missing(redis_client *c) {
    size_t length;
    const char *name = word(c, 0, &length);
    char text[160];
    const char *option = is_word(c, 0, "XREAD") || is_word(c, 0, "XREADGROUP") ? " BLOCK" : "";
    /* All these names are short, and letters alone. */
    snprintf(text, sizeof(text),
             "-ERR over SMT this Redis has no such %.*s%s: use TCP or TLS, or "
             "Valkey\r\n",
             (int)length, name, option);
    reply_text(c, text);
}

/* ---- calls ---- */

/* Calls the client's command by its words from the first argument on. Returns NULL if it cannot be
 * called at all. */
static redis_reply *call(redis_client *c, const char *name, const char *format) {
    size_t count = c->command.count - 1;
    module_string **words = calloc(count + 1, sizeof(*words));
    if (!words) return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t length;
        const char *bytes = word(c, i + 1, &length);
        words[i] = redis.CreateString(NULL, bytes, length);
    }
    errno = 0;
    redis_reply *reply = redis.Call(redis_context, name, format, words, count);
    int error = errno;
    for (size_t i = 0; i < count; i++) redis.FreeString(NULL, words[i]);
    free(words);
    errno = error;
    return reply;
}

static int begins(const char *bytes, size_t length, const char *text) {
    return length >= strlen(text) && !memcmp(bytes, text, strlen(text));
}

static void take_reply(redis_client *c, redis_reply *reply, int error) {
    size_t length = 0;
    const char *bytes = reply ? redis.CallReplyProto(reply, &length) : NULL;
    if (!bytes) {
        reply_text(c, "-ERR environment: the command cannot be called\r\n");
    } else if (error == EACCES && begins(bytes, length, "-ERR ")) {
        /* The code that clients know. */
        reply_text(c, "-NOPERM ");
        redis_client_reply(c, bytes + 5, length - 5);
    } else {
        redis_client_reply(c, bytes, length);
    }
    if (reply) redis.FreeCallReply(reply);
}

/* Whether a call was refused because scripts may not make it. */
static int is_for_no_script(redis_reply *reply, int error) {
    if (!reply || error != ESPIPE) return 0;
    size_t length;
    const char *bytes = redis.CallReplyProto(reply, &length);
    return memmem(bytes, length, "is not allowed on script mode", 29) != NULL;
}

/* The user of the session whose command is being called, or NULL. */
static redis_user *calling;

static redis_user *user_of(module_context *context) {
    module_string *name =
        redis.GetClientUserNameById(context, module.api.GetClientId(context));
    if (!name) return NULL;
    redis_user *user = redis.GetModuleUserFromUserName(name);
    redis.FreeString(context, name);
    return user;
}

int redis_is_admin(module_context *context) {
    /* A call of a session has a client of its own, which has no number. */
    redis_user *user = calling ? calling : user_of(context);
    if (!user) return 0;
    module_string *words[] = {redis.CreateString(context, "CONFIG", 6),
                              redis.CreateString(context, "SET", 3)};
    int is_admin = redis.ACLCheckCommandPermissions(user, words, 2) == MODULE_OK;
    for (int i = 0; i < 2; i++) redis.FreeString(context, words[i]);
    if (!calling) redis.FreeModuleUser(user);
    return is_admin;
}

/* Calls the command as the client's user. Replicas and the append-only file get it (!), its user is
 * asked about (C), as are memory (M), replicas and disks (S). */
static void call_as_user(redis_client *c, const char *name) {
    module_string *user_name = redis.CreateString(NULL, c->user, strlen(c->user));
    redis_user *user = redis.GetModuleUserFromUserName(user_name);
    redis.FreeString(NULL, user_name);
    if (!user) {
        /* It was deleted; the server closes such clients. */
        c->is_closing = 1;
        return;
    }
    redis.SetContextUser(redis_context, user);
    calling = user;
    int is_3 = c->protocol == 3;
    redis_reply *reply = call(c, name, is_3 ? "!CMSE3v" : "!CMSEv");
    int error = errno;
    if (is_for_no_script(reply, error)) {
        redis.FreeCallReply(reply);
        /* Without S nothing holds a replica back from writing. */
        int flags = module.api.GetContextFlags(redis_context);
        int may_write = !(flags & REDIS_CONTEXT_SLAVE && flags & REDIS_CONTEXT_READONLY);
        const char *formats[2][2] = {{"!CMEWv", "!CMEW3v"}, {"!CMEv", "!CME3v"}};
        reply = call(c, name, formats[may_write][is_3]);
        error = errno;
    }
    take_reply(c, reply, error);
    redis.SetContextUser(redis_context, NULL);
    calling = NULL;
    redis.FreeModuleUser(user);
}

/* ---- who a client is ---- */

static int set_user(redis_client *c, const char *name, size_t length) {
    if (length >= sizeof(c->user) || memchr(name, '\0', length)) return 0;
    memcpy(c->user, name, length);
    c->user[length] = '\0';
    return 1;
}

/* Asks the server whether these words are a user and its password, and takes the user. The error is
 * the server's, and the success is for the caller to tell. */
static int authenticate(redis_client *c, size_t first, size_t count) {
    size_t name_length = 7, password_length;
    const char *name = "default";
    const char *password = word(c, first + count - 1, &password_length);
    if (count == 2) name = word(c, first, &name_length);
    redis_reply *reply =
        count == 2 ? redis.Call(redis_context, "AUTH", "Ebb", name, name_length, password,
                                password_length)
                   : redis.Call(redis_context, "AUTH", "Eb", password, password_length);
    size_t length = 0;
    const char *bytes = reply ? redis.CallReplyProto(reply, &length) : NULL;
    if (bytes && begins(bytes, length, "+OK")) {
        redis.FreeCallReply(reply);
        if (set_user(c, name, name_length)) return 1;
        reply_text(c, "-ERR limit: names of users over SMT have at most 255 bytes\r\n");
        return 0;
    }
    take_reply(c, reply, 0);
    return 0;
}

static void call_auth(redis_client *c) {
    if (c->command.count < 2)
        reply_text(c, "-ERR wrong number of arguments for 'auth' command\r\n");
    else if (c->command.count > 3)
        reply_text(c, "-ERR syntax error\r\n");
    else if (authenticate(c, 1, c->command.count - 1))
        reply_text(c, "+OK\r\n");
}

static void reply_hello(redis_client *c) {
    int version = module.api.GetServerVersion();
    int flags = module.api.GetContextFlags(redis_context);
    const char *mode = flags & REDIS_CONTEXT_CLUSTER ? "cluster" : "standalone";
    const char *role = flags & REDIS_CONTEXT_SLAVE ? "replica" : "master";
    char text[400], number[32];
    snprintf(number, sizeof(number), "%d.%d.%d", version >> 16 & 0xff, version >> 8 & 0xff,
             version & 0xff);
    snprintf(text, sizeof(text),
             "%s\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$%zu\r\n%s\r\n$5\r\nproto\r\n"
             ":%d\r\n$2\r\nid\r\n:%llu\r\n$4\r\nmode\r\n$%zu\r\n%s\r\n$4\r\nrole\r\n$%zu\r\n%s\r\n"
             "$7\r\nmodules\r\n*0\r\n",
             c->protocol == 3 ? "%7" : "*14", strlen(number), number, c->protocol,
             (unsigned long long)(c->session->index & INT64_MAX), strlen(mode), mode, strlen(role), role);
    reply_text(c, text);
}

/* HELLO [2|3 [AUTH user password] [SETNAME name]]; the name is nowhere to be seen. */
static void call_hello(redis_client *c) {
    size_t count = c->command.count, at = 2, login = 0;
    int protocol = c->protocol;
    if (count > 1) {
        protocol = is_word(c, 1, "2") ? 2 : is_word(c, 1, "3") ? 3 : 0;
        if (!protocol) {
            reply_text(c, "-NOPROTO unsupported protocol version\r\n");
            return;
        }
    }
    while (at < count) {
        if (is_word(c, at, "AUTH") && count - at > 2) {
            login = at + 1;
            at += 3;
        } else if (is_word(c, at, "SETNAME") && count - at > 1) {
            at += 2;
        } else {
            reply_text(c, "-ERR Syntax error in HELLO\r\n");
            return;
        }
    }
    if (login && !authenticate(c, login, 2)) return;
    if (!c->user[0]) {
        reply_text(c, "-NOAUTH HELLO must be called with the client already authenticated, "
                      "otherwise the HELLO <proto> AUTH <user> <pass> option can be used\r\n");
        return;
    }
    c->protocol = protocol;
    reply_hello(c);
}

/* Whether the reply to a call of two words has a string. */
static int reply_has(const char *command, const char *one, const char *other, const char *text) {
    redis_reply *reply = redis.Call(redis_context, command, "Ecc", one, other);
    if (!reply) return 0;
    size_t length;
    const char *bytes = redis.CallReplyProto(reply, &length);
    int has = bytes && memmem(bytes, length, text, strlen(text)) != NULL;
    redis.FreeCallReply(reply);
    return has;
}

int redis_first_user(redis_client *c, int is_local) {
    const char *name = c->session->name;
    if (module.user != USER_NONE) {
        module_string *string = redis.CreateString(NULL, name, strlen(name));
        redis_user *user = name[0] ? redis.GetModuleUserFromUserName(string) : NULL;
        redis.FreeString(NULL, string);
        if (user) redis.FreeModuleUser(user);
        /* A user that is off is there, and may not come in. */
        if (user && reply_has("ACL", "GETUSER", name, "$2\r\non\r\n") && set_user(c, name, strlen(name))) return 1;
        module.api.Log(NULL, "notice",
                       "client %s:%d is closed: its certificate names no ACL user that is on (%s)",
                       c->session->ip, c->session->port, name);
        return 0;
    }
    /* Flags are whole strings there; patterns and passwords have other forms. */
    int is_open = reply_has("ACL", "GETUSER", "default", "$6\r\nnopass\r\n");
    if (is_open && !is_local && !reply_has("CONFIG", "GET", "protected-mode", "$2\r\nno\r\n")) {
        reply_text(c, "-DENIED Redis is running in protected mode because protected mode is "
                      "enabled and no password is set for the default user. Over SMT as over TCP "
                      "clients of other hosts are refused until there is one.\r\n");
        return 0;
    }
    if (is_open && reply_has("ACL", "GETUSER", "default", "$2\r\non\r\n"))
        set_user(c, "default", 7);
    return 1;
}

void redis_call(redis_client *c) {
    char name[64];
    size_t length;
    const char *bytes = word(c, 0, &length);
    if (is_word(c, 0, "QUIT")) {
        reply_text(c, "+OK\r\n");
        c->is_closing = 1;
    } else if (is_word(c, 0, "AUTH")) {
        call_auth(c);
    } else if (is_word(c, 0, "HELLO")) {
        call_hello(c);
    } else if (!c->user[0]) {
        reply_text(c, "-NOAUTH Authentication required.\r\n");
    } else if (is_missing(c)) {
        reply_missing(c);
    } else if (length >= sizeof(name) || memchr(bytes, '\0', length)) {
        reply_text(c, "-ERR unknown command\r\n");
    } else {
        memcpy(name, bytes, length);
        name[length] = '\0';
        call_as_user(c, name);
    }
}

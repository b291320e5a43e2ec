/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The part of Valkey that a connection type meets: layouts of its connection.h and ae.h, names of
 * functions that the server exports, and of its module API.
 *
 * The server has no stable interface for connection types, and it has changed with 8.1, by 9.1 and
 * within 9.1. Hence each generation has a description of its own here, and generation.c looks at the
 * server's version and at its own connection types before anything is registered. */
#ifndef VALKEY_ABI_H
#define VALKEY_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define C_OK 0
#define C_ERR (-1)
#define AE_READABLE 1
#define LISTENER_ADDRESSES_MAX 16

typedef enum {
    CONN_STATE_NONE = 0,
    CONN_STATE_CONNECTING,
    CONN_STATE_ACCEPTING,
    CONN_STATE_CONNECTED,
    CONN_STATE_CLOSED,
    CONN_STATE_ERROR
} connection_state;

#define CONN_FLAG_CLOSE_SCHEDULED (1 << 0)
#define CONN_FLAG_WRITE_BARRIER (1 << 1)

struct event_loop;
typedef struct connection connection;
typedef struct connection_listener connection_listener;
typedef void (*connection_handler)(connection *conn);
typedef void event_handler(struct event_loop *loop, int fd, void *data, int mask);

/* Runs of functions that connection types of all generations have, in order. */
#define TYPE_OF_LISTENERS                                                                          \
    void (*init)(void);                                                                            \
    void (*cleanup)(void);                                                                         \
    int (*configure)(void *priv, int reconfigure);                                                 \
    event_handler *ae_handler;                                                                     \
    event_handler *accept_handler;                                                                 \
    int (*addr)(connection *conn, char *ip, size_t ip_len, int *port, int remote);                 \
    int (*is_local)(connection *conn);                                                             \
    int (*listen)(connection_listener *listener);
#define TYPE_OF_LIVES                                                                              \
    connection *(*conn_create)(void);                                                              \
    connection *(*conn_create_accepted)(int fd, void *priv);                                       \
    void (*shutdown)(connection *conn);                                                            \
    void (*close)(connection *conn);
#define TYPE_OF_BYTES                                                                              \
    int (*blocking_connect)(connection *conn, const char *addr, int port, long long timeout);      \
    int (*accept)(connection *conn, connection_handler accept_handler);                            \
    int (*write)(connection *conn, const void *data, size_t data_len);                             \
    int (*writev)(connection *conn, const struct iovec *iov, int iovcnt);                          \
    int (*read)(connection *conn, void *buf, size_t buf_len);                                      \
    int (*set_write_handler)(connection *conn, connection_handler handler, int barrier);           \
    int (*set_read_handler)(connection *conn, connection_handler handler);                         \
    const char *(*get_last_error)(connection *conn);                                               \
    ssize_t (*sync_write)(connection *conn, char *ptr, ssize_t size, long long timeout);           \
    ssize_t (*sync_read)(connection *conn, char *ptr, ssize_t size, long long timeout);            \
    ssize_t (*sync_readline)(connection *conn, char *ptr, ssize_t size, long long timeout);        \
    int (*has_pending_data)(void);                                                                 \
    int (*process_pending_data)(void);                                                             \
    void (*postpone_update_state)(connection *conn, int postponed);                                \
    void (*update_state)(connection *conn);

/* 8.0. A type is found by its name. `postponed` is 0 or 1. */
typedef struct connection_type_8_0 {
    const char *(*get_type)(connection *conn);
    TYPE_OF_LISTENERS
    TYPE_OF_LIVES
    int (*connect)(connection *conn, const char *addr, int port, const char *source_addr,
                   connection_handler connect_handler);
    TYPE_OF_BYTES
    char *(*get_peer_cert)(connection *conn);
} connection_type_8_0;

/* 8.1: a type closes its listeners by itself, and says whether it checks what it carries. */
typedef struct connection_type_8_1 {
    const char *(*get_type)(connection *conn);
    TYPE_OF_LISTENERS
    void (*close_listener)(connection_listener *listener);
    TYPE_OF_LIVES
    int (*connect)(connection *conn, const char *addr, int port, const char *source_addr,
                   connection_handler connect_handler);
    TYPE_OF_BYTES
    char *(*get_peer_cert)(connection *conn);
    int (*is_integrity_checked)(void);
} connection_type_8_1;

/* 9.1, from 9.1.2 on. A type is one of four numbers. `postponed` is a mask of POSTPONED_..., and a
 * type with `handlers_in_update_state` is told of a write that goes on while a read is over. */
typedef struct connection_type_9_1 {
    int (*get_type)(void);
    TYPE_OF_LISTENERS
    void (*close_listener)(connection_listener *listener);
    TYPE_OF_LIVES
    int (*connect)(connection *conn, const char *addr, int port, const char *source_addr,
                   int multipath, connection_handler connect_handler);
    TYPE_OF_BYTES
    int handlers_in_update_state;
    char *(*get_peer_cert)(connection *conn);
    void *(*get_peer_user)(connection *conn, char **cert_username);
    int (*is_integrity_checked)(void);
} connection_type_9_1;

#define TYPE_ID_TCP_9_1 0
#define TYPE_ID_TLS_9_1 2
#define TYPE_ID_RDMA_9_1 3

/* What a thread does with a connection, which the main thread must leave alone meanwhile. */
#define POSTPONED_READ (1 << 0)
#define POSTPONED_WRITE (1 << 1)

struct connection {
    void *type; /* one of the above, of the server's generation */
    connection_state state;
    int last_errno;
    int fd;
    short int flags;
    short int refs;
    unsigned short int iovcnt;
    void *private_data;
    connection_handler conn_handler;
    connection_handler write_handler;
    connection_handler read_handler;
};

struct connection_listener {
    int fd[LISTENER_ADDRESSES_MAX];
    int count;
    char **bindaddr;
    int bindaddr_count;
    int port;
    void *ct;
    /* What follows belongs to the type, and is not the same in all generations. */
};

/* Bits of a new client. The server has more than 64 and at most 128 of them. */
typedef struct client_flags {
    uint64_t low;
    uint64_t high;
} client_flags;

/* Functions that the server exports, found by name (module.c). */
typedef struct server_functions {
    int (*connTypeRegister)(void *type);
    union {
        void *(*by_name)(const char *name); /* 8.0, 8.1 */
        void *(*by_id)(int id);             /* 9.1 */
    } connectionByType;
    union {
        connection_listener *(*by_name)(const char *name);
        connection_listener *(*by_id)(int id);
    } listenerByType;
    void (*acceptCommonHandler)(connection *conn, client_flags flags, char *ip);
    void (*aeSetBeforeSleepProc)(struct event_loop *loop, void (*handler)(struct event_loop *));
    void (*aeSetDontWait)(struct event_loop *loop, int is_on);
    void (*beforeSleep)(struct event_loop *loop);
} server_functions;

/* The module API (valkeymodule.h), as far as it is used. */
typedef struct module_context module_context;
typedef struct module_string module_string;
typedef struct module_info module_info;
typedef struct module_command module_command;
typedef struct module_event {
    uint64_t id;
    uint64_t dataver;
} module_event;

#define MODULE_OK 0
#define MODULE_ERR 1
#define MODULE_API_VERSION 1
#define MODULE_FLAG_CLUSTER (1 << 5)
#define MODULE_FLAG_SERVER_STARTUP (1 << 24)
#define MODULE_OPTION_HANDLE_REPL_ASYNC_LOAD (1 << 2)
#define MODULE_EVENT_CLIENT_CHANGE 4
#define MODULE_EVENT_SHUTDOWN 5
#define MODULE_CLIENT_CONNECTED 0
#define MODULE_CLIENT_BLOCKED (1 << 2)

/* What is told of a client; the version of this layout is 1. */
typedef struct module_client {
    uint64_t version;
    uint64_t flags;
    uint64_t id;
    char addr[46];
    uint16_t port;
    uint16_t db;
} module_client;

typedef struct module_functions {
    int (*SetModuleAttribs)(module_context *, const char *name, int version, int api);
    void (*SetModuleOptions)(module_context *, int options);
    int (*GetServerVersion)(void);
    int (*GetContextFlags)(module_context *);
    const char *(*StringPtrLen)(const module_string *, size_t *length);
    void (*Log)(module_context *, const char *level, const char *format, ...);
    int (*SubscribeToServerEvent)(module_context *, module_event,
                                  void (*)(module_context *, module_event, uint64_t, void *));
    int (*AuthenticateClientWithACLUser)(module_context *, const char *name, size_t length,
                                         void (*changed)(uint64_t, void *), void *data,
                                         uint64_t *client);
    int (*DeauthenticateAndCloseClient)(module_context *, uint64_t client);
    int (*RegisterInfoFunc)(module_context *, void (*)(module_info *, int for_crash_report));
    int (*InfoAddSection)(module_info *, const char *name);
    int (*InfoAddFieldULongLong)(module_info *, const char *name, unsigned long long value);
    int (*CreateCommand)(module_context *, const char *name,
                         int (*)(module_context *, module_string **words, int count),
                         const char *flags, int first_key, int last_key, int key_step);
    int (*WrongArity)(module_context *);
    int (*ReplyWithLongLong)(module_context *, long long number);
    int (*ReplyWithError)(module_context *, const char *text);
    unsigned long long (*GetClientId)(module_context *);
    int (*GetClientInfoById)(module_client *, uint64_t id);
    module_command *(*GetCommand)(module_context *, const char *name);
    /* NULL in Redis 7.0. */
    int (*SetCommandACLCategories)(module_command *, const char *categories);
} module_functions;

#endif

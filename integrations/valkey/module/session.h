/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A session of SMT as a connection of the server, and the state that all of them share. */
#ifndef SESSION_H
#define SESSION_H

#include "input.h"
#include "smt.h"
#include "valkey_abi.h"

/* Most bytes of one message to a client. */
#define MESSAGE_MAX (128 * 1024)
/* One-way messages of a session that its client has not accepted: 2 MB at most. A client that reads
 * slowly fills the server's own output buffer from then on, to which the server's limits apply. */
#define UNACCEPTED_MAX 16
/* Bytes that a client may have sent and the server has not read. Clients hold back far earlier. */
#define HELD_MAX (128u << 20)
/* Bytes that an I/O thread may write before the main thread sends them. */
#define OUTBOX_MAX (1 << 20)
/* A client has this time to take the last bytes of a connection that the server has closed. */
#define LINGER_MS 5000
#define NAME_MAX_LENGTH 256

typedef struct session {
    connection conn; /* first: the server has pointers to it */
    uint64_t index;
    int has_ended; /* the session, not the connection */
    char ip[46], local_ip[46];
    int port, local_port;
    char name[NAME_MAX_LENGTH]; /* of the certificate, by the option user; empty if there is none */
    uint64_t client;            /* the server's number of it; 0 in Redis, which has none */

    input in;
    input_message *arrived, **arrived_end; /* while an I/O thread has the connection */

    uint64_t written; /* position of the next byte to the client */
    smt_rpc unanswered;
    int has_unanswered;
    unsigned unaccepted; /* one-way messages on their way */
    int is_blocked;      /* the client takes no further one-way message for now */
    uint8_t *outbox;     /* bytes that an I/O thread has written, or that found no room */
    size_t outbox_length, outbox_taken;
    int is_ending; /* the end of the stream is to be told */
    int is_cut;       /* its client is trusted no more: nothing that it has sent is read */
    int is_finishing; /* the same, but for what it has sent before */

    int postponed; /* POSTPONED_...: I/O threads have the connection */
    int end_arrived;  /* meanwhile */
    uint64_t read_turn;
    int64_t heard_ms;      /* when the client was last heard */
    int64_t linger_until;  /* while the connection is closed and the session is not */
    int is_pending;
    struct session *pending_next, *pending_previous;
    struct session *all_next, *all_previous;
} session;

/* What the module has. */
typedef struct module_state {
    server_functions server;
    char *addresses[1]; /* what the server's listener is to have as its addresses */
    void *type; /* sessions as connections, in the layout of the server */
    module_functions api;
    smt_server_options options;
    enum { USER_NONE, USER_COMMON_NAME, USER_DNS_NAME } user;
    /* Whether the caller of a command is an administrator, where the server's rules cannot say it. */
    int (*is_admin)(module_context *);
    enum { DISTRUSTED_END, DISTRUSTED_FINISH, DISTRUSTED_KEEP } distrusted;
    int64_t keepalive_ms;
    smt_endpoint *endpoint;
    int is_child; /* of the server, which writes a snapshot or a file */
    struct event_loop *loop;
    uint64_t turn;
    int64_t now_ms;
    session *accepting;
    session *pending, *pending_last, *all;
    unsigned pending_count;
    unsigned postponed; /* connections that an I/O thread has */
    /* For INFO. */
    unsigned long long sessions, accepted, refused, broken, distrusted_count;
} module_state;

extern module_state module;
/* Sessions as connections of each generation (generation.h). */
extern connection_type_8_0 session_type_8_0;
extern connection_type_8_1 session_type_8_1;
extern connection_type_9_1 session_type_9_1;

/* A new session. The connection is the server's from here on. */
void session_accept(uint64_t index, const smt_peer *peer);
/* A message of a session's client; the body becomes the session's. */
void session_message(session *s, const smt_event *event);
/* A one-way message has ended: there may be room for others. The session ends with one that was not
 * delivered. */
void session_sent(session *s, int is_delivered);
/* The session is no more. */
void session_ended(session *s);
void session_unblocked(session *s);
/* Ends a session at once, whose client is trusted no more. */
void session_cut(session *s);
/* Ends it when the commands that have come are answered. Returns 0 if it was to end already. */
int session_finish(session *s);
/* Sends a message of no bytes to a client that was not heard for long, closes what has lingered,
 * and ends what has finished. */
void session_tick(session *s);
/* Calls the handlers of connections that have something to do; returns how many. */
int sessions_run_pending(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Flow: 1. session_accept makes a connection of a session  2. messages of its client go to `input`,
 * and the connection is pending  3. before the loop sleeps the server's read handler takes the
 * bytes  4. what the server writes leaves as the reply to the last request that it has read, or as
 * one-way messages (output.c)  5. a connection that the server closes lingers until its client has
 * the last bytes. */
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "listener.h"
#include "output.h"

static void pend(session *s) {
    if (s->is_pending) return;
    s->is_pending = 1;
    module.pending_count++;
    s->pending_next = NULL;
    s->pending_previous = module.pending_last;
    if (module.pending_last)
        module.pending_last->pending_next = s;
    else
        module.pending = s;
    module.pending_last = s;
}

static void unpend(session *s) {
    if (!s->is_pending) return;
    s->is_pending = 0;
    module.pending_count--;
    *(s->pending_previous ? &s->pending_previous->pending_next : &module.pending) = s->pending_next;
    *(s->pending_next ? &s->pending_next->pending_previous : &module.pending_last) =
        s->pending_previous;
}

/* The server learns by a read that a connection has ended, or that bytes could not be sent after it
 * had written them (output_flush_outbox). */
static int has_work_to_read(const session *s) {
    switch (s->conn.state) {
    case CONN_STATE_CONNECTED:
        return s->conn.read_handler &&
               (input_has_ready(&s->in) || input_is_at_end(&s->in) || s->has_ended);
    case CONN_STATE_ERROR:
        return s->conn.read_handler != NULL;
    default:
        return 0;
    }
}

static int has_work_to_write(const session *s) {
    return s->conn.state == CONN_STATE_CONNECTED && s->conn.write_handler &&
           (output_has_room(s) || s->has_ended);
}

static void pend_if_ready(session *s) {
    if (s->postponed) return;
    if (has_work_to_read(s) || has_work_to_write(s)) pend(s);
}

/* ---- what SMT tells ---- */

void session_accept(uint64_t index, const smt_peer *peer) {
    session *s = calloc(1, sizeof(*s));
    if (!s) {
        smt_session_close(module.endpoint, index);
        return;
    }
    s->conn.type = module.type;
    s->conn.state = CONN_STATE_ACCEPTING;
    s->conn.fd = -1;
    s->conn.iovcnt = 256;
    s->index = index;
    input_init(&s->in);
    s->arrived_end = &s->arrived;
    memcpy(s->ip, peer->ip, sizeof(s->ip));
    memcpy(s->local_ip, peer->local_ip, sizeof(s->local_ip));
    s->port = peer->port;
    s->local_port = peer->local_port;
    s->heard_ms = module.now_ms;
    smt_slice name = {NULL, 0};
    if (module.user == USER_COMMON_NAME) name = peer->common_name;
    if (module.user == USER_DNS_NAME) name = peer->dns_name;
    /* A name that does not fit is nobody's, nor one with a zero: it would be taken for its part
     * before that. */
    if (name.length && name.length < sizeof(s->name) && !memchr(name.data, '\0', name.length))
        memcpy(s->name, name.data, name.length);
    s->all_next = module.all;
    if (module.all) module.all->all_previous = s;
    module.all = s;
    module.sessions++;
    module.accepted++;
    smt_session_set_data(module.endpoint, index, s);
    module.accepting = s;
    module.server.acceptCommonHandler(&s->conn, (client_flags){0, 0}, s->ip);
    module.accepting = NULL;
}

/* Ends a session whose client breaks the rules or sends too much. */
static void break_session(session *s, const char *reason) {
    module.broken++;
    module.api.Log(NULL, "notice", "session with %s:%d is closed: %s", s->ip, s->port, reason);
    smt_session_close(module.endpoint, s->index);
    session_ended(s);
}

static void add_input(session *s, smt_rpc rpc, int is_request, smt_body *body, smt_slice bytes) {
    input_outcome outcome = input_add(&s->in, rpc, is_request, body, bytes, HELD_MAX);
    if (outcome == INPUT_TAKEN) return;
    smt_body_free(body);
    if (outcome == INPUT_END) {
        smt_error error;
        if (is_request) smt_reply(module.endpoint, rpc, NULL, 0, &error);
        return;
    }
    break_session(s, outcome == INPUT_FULL
                         ? "limit: its client has sent more than may wait"
                         : "peer: a message of its client has no position in the stream, or one "
                           "that was there before or is behind its end");
}

void session_message(session *s, const smt_event *event) {
    s->heard_ms = module.now_ms;
    int is_request = event->kind == SMT_EVENT_REQUEST;
    /* Nobody reads any more, or the client looks whether the server is there. */
    if (s->linger_until || s->has_ended || s->is_finishing ||
        (!is_request && event->bytes.length == 0)) {
        smt_body_free(event->body);
        return;
    }
    if (!s->postponed) {
        add_input(s, event->rpc, is_request, event->body, event->bytes);
        pend_if_ready(s);
        return;
    }
    input_message *message = calloc(1, sizeof(*message));
    if (!message) {
        smt_body_free(event->body);
        break_session(s, "environment: no memory");
        return;
    }
    message->body = event->body;
    message->rpc = event->rpc;
    message->is_request = is_request;
    message->data = event->bytes.data;
    message->length = event->bytes.length;
    *s->arrived_end = message;
    s->arrived_end = &message->next;
}

void session_sent(session *s, int is_delivered) {
    s->heard_ms = module.now_ms;
    s->unaccepted--;
    if (!is_delivered) {
        /* The client would wait for these bytes for ever. */
        smt_session_close(module.endpoint, s->index);
        session_ended(s);
        return;
    }
    if (s->postponed) return;
    output_flush_outbox(s);
    pend_if_ready(s);
}

void session_unblocked(session *s) {
    s->is_blocked = 0;
    if (s->postponed) return;
    output_flush_outbox(s);
    pend_if_ready(s);
}

static void free_session(session *s) {
    unpend(s);
    *(s->all_previous ? &s->all_previous->all_next : &module.all) = s->all_next;
    if (s->all_next) s->all_next->all_previous = s->all_previous;
    module.sessions--;
    input_free(&s->in);
    while (s->arrived) {
        input_message *message = s->arrived;
        s->arrived = message->next;
        input_message_free(message);
    }
    free(s->outbox);
    free(s);
}

void session_ended(session *s) {
    if (s->has_ended) return;
    if (module.endpoint) smt_session_set_data(module.endpoint, s->index, NULL);
    if (s->postponed) {
        s->end_arrived = 1;
        return;
    }
    s->has_ended = 1;
    s->has_unanswered = 0;
    if (s->is_cut) input_free(&s->in);
    if (s->linger_until)
        free_session(s);
    else
        pend_if_ready(s);
}

/* ---- clients that are trusted no more ---- */

void session_cut(session *s) {
    s->is_cut = 1;
    smt_session_close_distrusted(module.endpoint, s->index);
    session_ended(s);
}

int session_finish(session *s) {
    if (s->is_finishing || s->linger_until || s->has_ended) return 0;
    return s->is_finishing = 1;
}

/* Whether something of the client is in progress: commands that were not read, a command that blocks
 * or is held back, replies that have not left. The server takes the read handler away while it is in
 * the midst of a script. Half a command is nothing, since its rest is not taken any more. */
static int is_busy(const session *s) {
    module_client client = {.version = 1};
    if (s->postponed || input_has_ready(&s->in) || s->outbox_taken < s->outbox_length) return 1;
    if (!s->conn.read_handler || s->conn.write_handler) return 1;
    return s->client && module.api.GetClientInfoById(&client, s->client) == MODULE_OK &&
           client.flags & MODULE_CLIENT_BLOCKED;
}

void session_tick(session *s) {
    if (s->linger_until) {
        if (module.now_ms < s->linger_until) return;
        smt_session_set_data(module.endpoint, s->index, NULL);
        smt_session_close(module.endpoint, s->index);
        free_session(s);
    } else if (s->is_finishing && !s->has_ended && !is_busy(s)) {
        input_stop(&s->in);
        pend_if_ready(s);
    } else if (module.keepalive_ms && !s->has_ended && !s->postponed &&
               module.now_ms - s->heard_ms >= module.keepalive_ms && s->unaccepted == 0) {
        output_keep_alive(s);
    }
}

/* ---- what the server calls ---- */

static void close_connection(connection *conn);

/* Calls a handler, in which the server may close the connection. Returns whether it lives on. */
static int call_handler(connection *conn, connection_handler handler) {
    conn->refs++;
    if (handler) handler(conn);
    conn->refs--;
    if (conn->flags & CONN_FLAG_CLOSE_SCHEDULED) {
        if (!conn->refs) close_connection(conn);
        return 0;
    }
    return 1;
}

static void run(session *s) {
    connection *conn = &s->conn;
    if (s->postponed) return;
    /* With a barrier, replies to what was read in this turn wait until the append-only file is on
     * the disk: the server writes them itself, behind that. */
    int is_barred = (conn->flags & CONN_FLAG_WRITE_BARRIER) && s->read_turn == module.turn;
    if (!is_barred && has_work_to_write(s)) {
        if (!call_handler(conn, conn->write_handler)) return;
    }
    if (has_work_to_read(s)) {
        s->read_turn = module.turn;
        if (!call_handler(conn, conn->read_handler)) return;
    }
    pend_if_ready(s);
}

int sessions_run_pending(void) {
    /* Those that are pending again wait for the next turn. A handler may close any connection. */
    int count = 0;
    for (unsigned left = module.pending_count; left && module.pending; left--, count++) {
        session *s = module.pending;
        unpend(s);
        run(s);
    }
    return count;
}

static int has_pending(void) {
    return module.pending != NULL;
}

static const char *type_name(connection *conn) {
    (void)conn;
    return "smt";
}

/* Four numbers are all that 9.1 has, and a server without RDMA asks nothing more of this one than of
 * any other. */
static int type_id(void) {
    return TYPE_ID_RDMA_9_1;
}

static int address(connection *conn, char *ip, size_t ip_len, int *port, int remote) {
    session *s = (session *)conn;
    if (ip) snprintf(ip, ip_len, "%s", remote ? s->ip : s->local_ip);
    if (port) *port = remote ? s->port : s->local_port;
    return C_OK;
}

static int is_local(connection *conn) {
    session *s = (session *)conn;
    return !strncmp(s->ip, "127.", 4) || !strcmp(s->ip, "::1");
}

/* Connections to others are TCP or TLS: stock servers have no way to name a third kind. */
static connection *create(void) {
    session *s = calloc(1, sizeof(*s));
    if (!s) abort();
    s->conn.type = module.type;
    s->conn.fd = -1;
    s->conn.state = CONN_STATE_ERROR;
    s->conn.last_errno = EOPNOTSUPP;
    s->has_ended = 1;
    s->arrived_end = &s->arrived;
    input_init(&s->in);
    s->all_next = module.all;
    if (module.all) module.all->all_previous = s;
    module.all = s;
    module.sessions++;
    return &s->conn;
}

static connection *create_accepted(int fd, void *priv) {
    (void)fd, (void)priv;
    return create();
}

static int connect_to(connection *conn, const char *addr, int port, const char *source_addr,
                      connection_handler handler) {
    (void)conn, (void)addr, (void)port, (void)source_addr, (void)handler;
    return C_ERR;
}

static int connect_to_9_1(connection *conn, const char *addr, int port, const char *source_addr,
                          int multipath, connection_handler handler) {
    (void)multipath;
    return connect_to(conn, addr, port, source_addr, handler);
}

static int blocking_connect(connection *conn, const char *addr, int port, long long timeout) {
    (void)conn, (void)addr, (void)port, (void)timeout;
    return C_ERR;
}

static int accept_connection(connection *conn, connection_handler handler) {
    if (conn->state != CONN_STATE_ACCEPTING) return C_ERR;
    conn->state = CONN_STATE_CONNECTED;
    return call_handler(conn, handler) ? C_OK : C_ERR;
}

static void shutdown_connection(connection *conn) {
    /* Children have no copy of the endpoint: there is nothing to tear down beside `close`. */
    (void)conn;
}

/* In 9.1 a thread that reads calls this too, with what holds already: then nothing is written. */
static void postpone(connection *conn, int mask) {
    session *s = (session *)conn;
    if (s->postponed == mask) return;
    if (!s->postponed) module.postponed++;
    if (!mask) module.postponed--;
    s->postponed = mask;
}

static void postpone_all(connection *conn, int on) {
    postpone(conn, on ? POSTPONED_READ | POSTPONED_WRITE : 0);
}

static void close_connection(connection *conn) {
    session *s = (session *)conn;
    if (conn->refs) {
        conn->flags |= CONN_FLAG_CLOSE_SCHEDULED;
        return;
    }
    unpend(s);
    conn->state = CONN_STATE_CLOSED;
    conn->read_handler = conn->write_handler = NULL;
    postpone(conn, 0);
    if (s->has_ended || !module.endpoint) {
        free_session(s);
        return;
    }
    input_free(&s->in);
    s->linger_until = module.now_ms + LINGER_MS;
    output_end(s);
}

static int set_read_handler(connection *conn, connection_handler handler) {
    conn->read_handler = handler;
    pend_if_ready((session *)conn);
    return C_OK;
}

static int set_write_handler(connection *conn, connection_handler handler, int barrier) {
    conn->write_handler = handler;
    if (barrier)
        conn->flags |= CONN_FLAG_WRITE_BARRIER;
    else
        conn->flags &= ~CONN_FLAG_WRITE_BARRIER;
    pend_if_ready((session *)conn);
    return C_OK;
}

static int read_connection(connection *conn, void *buffer, size_t length) {
    session *s = (session *)conn;
    size_t copied = input_read(&s->in, buffer, length);
    if (copied) {
        if (!s->postponed) output_answer_read(s);
        return (int)copied;
    }
    if (s->has_ended || conn->state == CONN_STATE_ERROR || input_is_at_end(&s->in)) {
        conn->state = CONN_STATE_CLOSED;
        return 0;
    }
    errno = EAGAIN;
    return -1;
}

static int write_vector(connection *conn, const struct iovec *vector, int count) {
    return output_write((session *)conn, vector, count);
}

static int write_bytes(connection *conn, const void *data, size_t length) {
    struct iovec vector = {(void *)data, length};
    return output_write((session *)conn, &vector, 1);
}

static const char *last_error(connection *conn) {
    return strerror(conn->last_errno);
}

static ssize_t no_sync(connection *conn, char *ptr, ssize_t size, long long timeout) {
    (void)ptr, (void)size, (void)timeout;
    conn->last_errno = errno = EOPNOTSUPP;
    return -1;
}

/* The main thread has the connection again, unless a thread still writes. No thread reads: a read
 * begins while nothing is postponed, and the server calls this when one has ended. 9.1 leaves
 * POSTPONED_READ set behind a blocked client's commands, and would never take it back. */
static void update_state(connection *conn) {
    session *s = (session *)conn;
    postpone(conn, s->postponed & POSTPONED_WRITE);
    if (s->postponed) return;
    output_answer_read(s);
    output_flush_outbox(s);
    while (s->arrived) {
        input_message *message = s->arrived;
        s->arrived = message->next;
        if (!s->arrived) s->arrived_end = &s->arrived;
        smt_slice bytes = {message->data, message->length};
        if (s->has_ended)
            smt_body_free(message->body);
        else
            add_input(s, message->rpc, message->is_request, message->body, bytes);
        free(message);
    }
    if (s->end_arrived) session_ended(s);
    pend_if_ready(s);
}

/* What is the same in all generations. */
#define SESSION_FUNCTIONS                                                                          \
    .accept_handler = listener_ready, .ae_handler = listener_ready, .addr = address,               \
    .is_local = is_local, .listen = listener_listen, .conn_create = create,                        \
    .conn_create_accepted = create_accepted, .shutdown = shutdown_connection,                      \
    .close = close_connection, .blocking_connect = blocking_connect, .accept = accept_connection,  \
    .write = write_bytes, .writev = write_vector, .read = read_connection,                         \
    .set_write_handler = set_write_handler, .set_read_handler = set_read_handler,                  \
    .get_last_error = last_error, .sync_write = no_sync, .sync_read = no_sync,                     \
    .sync_readline = no_sync, .has_pending_data = has_pending,                                     \
    .process_pending_data = sessions_run_pending, .update_state = update_state

connection_type_8_0 session_type_8_0 = {
    SESSION_FUNCTIONS,
    .get_type = type_name,
    .connect = connect_to,
    .postpone_update_state = postpone_all,
};

connection_type_8_1 session_type_8_1 = {
    SESSION_FUNCTIONS,
    .get_type = type_name,
    .close_listener = listener_close,
    .connect = connect_to,
    .postpone_update_state = postpone_all,
};

/* Without `handlers_in_update_state` the server says that nothing is postponed when a read has ended
 * and a thread still writes. */
connection_type_9_1 session_type_9_1 = {
    SESSION_FUNCTIONS,
    .get_type = type_id,
    .close_listener = listener_close,
    .connect = connect_to_9_1,
    .postpone_update_state = postpone,
    .handlers_in_update_state = 1,
};

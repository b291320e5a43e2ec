/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "redis_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis_call.h"

/* Bytes that are read at once, and bytes of replies behind which no further command is executed. */
#define READ_AT_ONCE (256 * 1024)
#define REPLIES_ENOUGH (64 * 1024)
/* Bytes of a command. */
#define QUERY_MAX (128u << 20)
/* As the server's own limits of clients without a user. */
static const command_limits limits_of_users = {1024 * 1024, QUERY_MAX - 1024};
static const command_limits limits_of_nobody = {10, 16 * 1024};

static redis_client *working;

/* Redis has no connection types: a session's is the module's own, in the layout of one of them. */
static const connection_type_8_0 *type_of(const connection *conn) {
    return conn->type;
}

static void start_work(redis_client *c) {
    if (c->is_working) return;
    c->is_working = 1;
    c->previous = NULL;
    c->next = working;
    if (working) working->previous = c;
    working = c;
}

static void end_work(redis_client *c) {
    if (!c->is_working) return;
    c->is_working = 0;
    *(c->previous ? &c->previous->next : &working) = c->next;
    if (c->next) c->next->previous = c->previous;
}

static void close_client(redis_client *c) {
    connection *conn = &c->session->conn;
    end_work(c);
    free(c->query);
    free(c->out);
    command_free(&c->command);
    free(c);
    conn->private_data = NULL;
    type_of(conn)->close(conn);
}

static int has_replies(const redis_client *c) {
    return c->out_taken < c->out_length;
}

/* Makes room for so many bytes behind those that are there. */
static int grow(uint8_t **bytes, size_t *capacity, size_t length, size_t more) {
    if (*capacity - length >= more) return 1;
    size_t wanted = length + more;
    if (wanted < 2 * *capacity) wanted = 2 * *capacity;
    uint8_t *grown = realloc(*bytes, wanted);
    if (!grown) return 0;
    *bytes = grown;
    *capacity = wanted;
    return 1;
}

void redis_client_reply(redis_client *c, const char *bytes, size_t length) {
    if (!grow(&c->out, &c->out_capacity, c->out_length, length)) {
        /* A reply that lacks bytes would be taken for another one. */
        c->session->conn.state = CONN_STATE_ERROR;
        c->is_closing = 1;
        return;
    }
    memcpy(c->out + c->out_length, bytes, length);
    c->out_length += length;
}

static void reply_fault(redis_client *c, const char *fault) {
    char text[160];
    int length = snprintf(text, sizeof(text), "-ERR Protocol error: %s\r\n", fault);
    redis_client_reply(c, text, length);
    c->is_closing = 1;
}

/* Executes complete commands, until there are enough replies. */
static void execute(redis_client *c) {
    size_t begin = 0;
    c->is_stalled = 0;
    while (!c->is_closing && !c->session->is_cut) {
        if (c->out_length - c->out_taken >= REPLIES_ENOUGH) {
            c->is_stalled = 1;
            break;
        }
        const uint8_t *bytes = c->query + begin;
        size_t length = c->query_length - begin;
        command_limits limits = c->user[0] ? limits_of_users : limits_of_nobody;
        command_outcome outcome = command_read(&c->command, bytes, length, limits);
        if (outcome == COMMAND_PARTIAL) {
            if (length > QUERY_MAX) reply_fault(c, "the command is too long for SMT");
            break;
        }
        if (outcome == COMMAND_MALFORMED) {
            reply_fault(c, c->command.fault);
            break;
        }
        /* The words are told from the beginning of the query. */
        for (size_t i = 0; i < c->command.count; i++) c->command.words[i].at += begin;
        if (c->command.count) redis_call(c);
        begin += c->command.position;
        command_next(&c->command);
    }
    if (begin) {
        c->query_length -= begin;
        memmove(c->query, c->query + begin, c->query_length);
    }
    /* A client that has sent much once does not keep the memory. */
    if (!c->query_length && c->query_capacity > 4 * READ_AT_ONCE) {
        free(c->query);
        c->query = NULL;
        c->query_capacity = 0;
        command_free(&c->command);
    }
}

static void readable(connection *conn) {
    redis_client *c = conn->private_data;
    if (!grow(&c->query, &c->query_capacity, c->query_length, READ_AT_ONCE)) {
        close_client(c);
        return;
    }
    int length = type_of(conn)->read(conn, c->query + c->query_length, READ_AT_ONCE);
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0) {
        close_client(c);
        return;
    }
    c->query_length += length;
    execute(c);
    if (!has_replies(c) && !c->is_closing) return;
    type_of(conn)->set_read_handler(conn, NULL);
    start_work(c);
}

/* Sends replies. Returns whether the client is still there. */
static int write_replies(redis_client *c) {
    connection *conn = &c->session->conn;
    while (has_replies(c)) {
        struct iovec rest = {c->out + c->out_taken, c->out_length - c->out_taken};
        int sent = type_of(conn)->writev(conn, &rest, 1);
        if (sent < 0 && conn->state == CONN_STATE_CONNECTED && errno == EAGAIN) return 1;
        if (sent < 0) {
            close_client(c);
            return 0;
        }
        c->out_taken += sent;
    }
    if (c->is_closing) {
        close_client(c);
        return 0;
    }
    c->out_length = c->out_taken = 0;
    if (c->out_capacity > 16 * REPLIES_ENOUGH) {
        free(c->out);
        c->out = NULL;
        c->out_capacity = 0;
    }
    return 1;
}

static void writable(connection *conn) {
    redis_client *c = conn->private_data;
    type_of(conn)->set_write_handler(conn, NULL, 0);
    start_work(c);
}

void redis_client_accept(connection *conn, client_flags flags, char *ip) {
    (void)flags, (void)ip;
    session *s = (session *)conn;
    redis_client *c = calloc(1, sizeof(*c));
    if (!c) {
        type_of(conn)->close(conn);
        return;
    }
    c->session = s;
    c->protocol = 2;
    c->is_new = 1;
    conn->private_data = c;
    type_of(conn)->accept(conn, NULL);
    start_work(c);
}

/* Finds out who a client is, not before commands may be called. */
static void greet(redis_client *c) {
    c->is_new = 0;
    connection *conn = &c->session->conn;
    c->is_closing = !redis_first_user(c, type_of(conn)->is_local(conn));
}

void redis_clients_execute(void) {
    for (redis_client *c = working; c; c = c->next) {
        if (c->is_new) greet(c);
        if (c->is_stalled && !has_replies(c)) execute(c);
    }
    sessions_run_pending();
}

void redis_clients_write(void) {
    for (redis_client *c = working, *next; c; c = next) {
        next = c->next;
        connection *conn = &c->session->conn;
        if ((has_replies(c) || c->is_closing) && !write_replies(c)) continue;
        if (has_replies(c)) {
            /* It works on when there is room. */
            end_work(c);
            type_of(conn)->set_write_handler(conn, writable, 0);
        } else if (!c->is_stalled && !c->is_new) {
            end_work(c);
            type_of(conn)->set_read_handler(conn, readable);
        }
    }
}

int redis_clients_have_work(void) {
    return working != NULL || module.pending != NULL;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

#define SLICES_MAX 257

static int outbox_has_bytes(const session *s) {
    return s->outbox_taken < s->outbox_length;
}

int output_has_room(const session *s) {
    int has_room_one_way = !s->is_blocked && s->unaccepted < UNACCEPTED_MAX;
    return !outbox_has_bytes(s) && (s->has_unanswered || has_room_one_way);
}

static int fail(session *s, int error) {
    s->conn.last_errno = errno = error;
    if (error != EAGAIN && s->conn.state == CONN_STATE_CONNECTED) s->conn.state = CONN_STATE_ERROR;
    return -1;
}

/* Sends a message of these slices, of which the first is the header. Returns 0 or an errno. */
static int send_slices(session *s, const smt_slice *slices, size_t count, int may_exceed) {
    smt_error error;
    if (s->has_unanswered) {
        s->has_unanswered = 0;
        int32_t code = smt_reply(module.endpoint, s->unanswered, slices, count, &error);
        if (code == SMT_OK) return 0;
        /* Its client has given the request up; the stream goes on. */
        if (code != SMT_ERROR_NO_RPC) return ECONNRESET;
    }
    if (s->unaccepted >= UNACCEPTED_MAX && !may_exceed) return EAGAIN;
    smt_rpc sent;
    switch (smt_send(module.endpoint, s->index, slices, count, &sent, &error)) {
    case SMT_OK:
        s->unaccepted++;
        return 0;
    case SMT_ERROR_BLOCKED:
        s->is_blocked = 1;
        return EAGAIN;
    default:
        return ECONNRESET;
    }
}

/* Sends the first bytes of the vector as one message; returns how many, or -1. */
static int send_message(session *s, const struct iovec *vector, int count) {
    uint8_t header[FRAME_HEADER];
    smt_slice slices[SLICES_MAX] = {{header, sizeof(header)}};
    size_t used = 1, length = 0;
    for (int i = 0; i < count && used < SLICES_MAX && length < MESSAGE_MAX; i++) {
        size_t part = vector[i].iov_len;
        if (part > MESSAGE_MAX - length) part = MESSAGE_MAX - length;
        slices[used++] = (smt_slice){vector[i].iov_base, part};
        length += part;
    }
    frame_write(header, s->written);
    int error = send_slices(s, slices, used, 0);
    if (error) return fail(s, error);
    s->written += length;
    return (int)length;
}

/* Keeps bytes until the main thread sends them. */
static int keep(session *s, const struct iovec *vector, int count) {
    if (!outbox_has_bytes(s)) s->outbox_length = s->outbox_taken = 0;
    size_t size = s->outbox_length;
    for (int i = 0; i < count && size < OUTBOX_MAX; i++) size += vector[i].iov_len;
    if (size > OUTBOX_MAX) size = OUTBOX_MAX;
    if (size == s->outbox_length) return fail(s, EAGAIN);
    uint8_t *outbox = realloc(s->outbox, size);
    if (!outbox) return fail(s, ENOMEM);
    s->outbox = outbox;
    size_t length = 0;
    for (int i = 0; i < count; i++) {
        size_t room = size - s->outbox_length;
        size_t part = vector[i].iov_len < room ? vector[i].iov_len : room;
        memcpy(s->outbox + s->outbox_length, vector[i].iov_base, part);
        s->outbox_length += part;
        length += part;
    }
    return (int)length;
}

/* A child of the server has no endpoint, and would write to a session only as the second channel of
 * a replica. */
static int refuse_child(session *s) {
    static int is_told;
    if (!is_told)
        module.api.Log(NULL, "warning",
                       "caller: the replica %s:%d gets no snapshot over SMT, since a child of this "
                       "server would write it: set dual-channel-replication-enabled to no at the "
                       "replica, and say REPLICAOF there again",
                       s->ip, s->port);
    is_told = 1;
    return fail(s, ECONNRESET);
}

int output_write(session *s, const struct iovec *vector, int count) {
    if (module.is_child) return refuse_child(s);
    if (s->conn.state == CONN_STATE_ERROR || s->conn.state == CONN_STATE_CLOSED) return -1;
    if (s->has_ended || !module.endpoint) return fail(s, ECONNRESET);
    if (s->postponed) return keep(s, vector, count);
    if (outbox_has_bytes(s)) return fail(s, EAGAIN);
    return send_message(s, vector, count);
}

void output_answer_read(session *s) {
    input_message *message;
    while ((message = input_next_read(&s->in))) {
        if (message->is_request) {
            smt_error error;
            /* A request whose output is not told apart from that of the next one. */
            if (s->has_unanswered && module.endpoint)
                smt_reply(module.endpoint, s->unanswered, NULL, 0, &error);
            s->unanswered = message->rpc;
            s->has_unanswered = !s->has_ended;
        }
        input_message_free(message);
    }
}

static void send_end(session *s) {
    uint8_t header[FRAME_HEADER];
    frame_write(header, s->written | FRAME_END);
    smt_slice slice = {header, sizeof(header)};
    /* Without room the end is told by that of the session. */
    send_slices(s, &slice, 1, 1);
}

void output_flush_outbox(session *s) {
    if (s->has_ended || !module.endpoint) s->outbox_taken = s->outbox_length;
    while (outbox_has_bytes(s)) {
        struct iovec rest = {s->outbox + s->outbox_taken, s->outbox_length - s->outbox_taken};
        int sent = send_message(s, &rest, 1);
        if (sent < 0) return;
        s->outbox_taken += sent;
    }
    free(s->outbox);
    s->outbox = NULL;
    s->outbox_length = s->outbox_taken = 0;
    if (s->is_ending && !s->has_ended && module.endpoint) {
        s->is_ending = 0;
        send_end(s);
    }
}

void output_end(session *s) {
    s->is_ending = 1;
    output_flush_outbox(s);
}

void output_keep_alive(session *s) {
    uint8_t header[FRAME_HEADER];
    frame_write(header, s->written);
    smt_slice slice = {header, sizeof(header)};
    smt_error error;
    smt_rpc sent;
    if (smt_send(module.endpoint, s->index, &slice, 1, &sent, &error) == SMT_OK) s->unaccepted++;
    s->heard_ms = module.now_ms;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The endpoint in the server's event loop: opened when the server listens, driven when its
 * descriptor is readable, and flushed when the server has written. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "listener.h"

static int64_t last_tick_ms;
/* The server's listener, as far as its layout is known. */
static connection_listener opened;
#define TICK_MS 500

static void update_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    module.now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A child that writes a snapshot must not keep the port when its parent dies, nor the keys. The
 * endpoint knows that it is a copy: it sends nothing. */
static void in_child(void) {
    module.is_child = 1;
    smt_endpoint_close(module.endpoint);
    module.endpoint = NULL;
}

int listener_listen(connection_listener *listener) {
    smt_error error;
    update_time();
    if (module.endpoint || listener->bindaddr != module.addresses) {
        /* 9.1, whose `rdma-port` and `rdma-bind` mean the listener at this place. */
        module.api.Log(NULL, "warning",
                       "caller: rdma-port and rdma-bind are for RDMA, which this server has not: "
                       "leave them out. SMT listens where `loadmodule` says");
        return C_ERR;
    }
    module.endpoint = smt_server_open(&module.options, &error);
    if (!module.endpoint) {
        module.api.Log(NULL, "warning", "cannot listen at %s: %s", module.options.address,
                       error.text);
        return C_ERR;
    }
    /* The server closes the descriptors of its listeners by itself. */
    int fd = dup(smt_endpoint_fd(module.endpoint));
    if (fd < 0) return C_ERR;
    listener->fd[0] = fd;
    listener->count = 1;
    listener->port = smt_endpoint_port(module.endpoint);
    opened = *listener;
    pthread_atfork(NULL, NULL, in_child);
    return C_OK;
}

/* The server closes listeners that it then opens elsewhere, which this one is not: it stays, under
 * its own address, and the server's call of `listen` that follows is refused. */
void listener_close(connection_listener *listener) {
    if (module.endpoint) *listener = opened;
}

void listener_tick_now(void) {
    last_tick_ms = module.now_ms - TICK_MS;
}

/* Looks after sessions by time, twice a second. The server wakes the loop more often by itself. */
static void tick(void) {
    if (module.now_ms - last_tick_ms < TICK_MS) return;
    last_tick_ms = module.now_ms;
    for (session *s = module.all, *next; s; s = next) {
        next = s->all_next;
        session_tick(s);
    }
}

void listener_end_turn(void) {
    smt_endpoint_flush(module.endpoint);
    module.turn++;
    update_time();
    tick();
}

static void before_sleep(struct event_loop *loop) {
    /* What the server writes leaves together, also in a turn that a client of TCP has caused. */
    if (module.endpoint) smt_endpoint_cork(module.endpoint);
    module.server.beforeSleep(loop);
    if (!module.endpoint) return;
    listener_end_turn();
    /* A thread's reads and writes are finished here, and nothing else wakes the loop for them, nor
     * for the rest of a long reply whose first part the server has just written. */
    if (module.postponed || module.pending) module.server.aeSetDontWait(loop, 1);
}

static void handle(const smt_event *event) {
    session *s = event->data;
    switch (event->kind) {
    case SMT_EVENT_ACCEPTED:
        session_accept(event->rpc.session, event->peer);
        return;
    case SMT_EVENT_REFUSED:
        module.refused++;
        module.api.Log(NULL, "verbose", "a client of SMT at %s:%d was not taken: %.*s",
                       event->peer->ip, event->peer->port, (int)event->text.length,
                       (const char *)event->text.data);
        return;
    case SMT_EVENT_REQUEST:
    case SMT_EVENT_ONE_WAY:
        if (s)
            session_message(s, event);
        else
            smt_body_free(event->body);
        return;
    case SMT_EVENT_SENT:
        if (s) session_sent(s, event->delivered);
        return;
    case SMT_EVENT_UNBLOCKED:
        if (s) session_unblocked(s);
        return;
    case SMT_EVENT_SESSION_ENDED:
        if (s) session_ended(s);
        return;
    default:
        return;
    }
}

void listener_receive(void) {
    update_time();
    smt_error error;
    if (smt_endpoint_process(module.endpoint, &error) != SMT_OK)
        module.api.Log(NULL, "warning", "SMT: %s", error.text);
    smt_event event;
    while (module.endpoint && smt_endpoint_next_event(module.endpoint, &event)) handle(&event);
}

void listener_ready(struct event_loop *loop, int fd, void *data, int mask) {
    (void)fd, (void)data, (void)mask;
    if (!module.endpoint) return;
    if (!module.loop) {
        module.loop = loop;
        module.server.aeSetBeforeSleepProc(loop, before_sleep);
    }
    listener_receive();
}

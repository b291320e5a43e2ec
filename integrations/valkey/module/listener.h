/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The endpoint in an event loop. */
#ifndef LISTENER_H
#define LISTENER_H

#include "session.h"

/* Opens the endpoint, whose descriptor becomes the listener's. */
int listener_listen(connection_listener *listener);
/* Gives a listener its own address back: the endpoint lives as long as the server. */
void listener_close(connection_listener *listener);
/* The descriptor is readable, in a loop whose sleep the module may delay. */
void listener_ready(struct event_loop *loop, int fd, void *data, int mask);
/* Receives all that has come, and gives messages to their connections. */
void listener_receive(void);
/* Has listener_end_turn look after sessions in this turn. */
void listener_tick_now(void);
/* Sends what was written in a turn of the loop, and looks after sessions by time. */
void listener_end_turn(void);

#endif

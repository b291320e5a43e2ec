/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the server writes to a connection, as messages of its session.
 *
 * Bytes leave as the reply to the last request that the server has read, as long as that is not
 * answered; else as a one-way message. Each message has the position of its first byte. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <sys/uio.h>

#include "session.h"

/* Whether something may be written now. */
int output_has_room(const session *s);
/* Writes as writev(2) does on a socket that does not block. */
int output_write(session *s, const struct iovec *vector, int count);
/* Answers requests that were read, but for the last one, whose answer is the next output. */
void output_answer_read(session *s);
/* Sends what an I/O thread has written, as far as there is room. */
void output_flush_outbox(session *s);
/* Tells the client where the stream ends, behind what is to be sent before. */
void output_end(session *s);
/* Asks a client that was silent for long whether it lives. */
void output_keep_alive(session *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The bytes that a client has sent, put back into their order.
 *
 * SMT delivers messages in any order. Each message of a client begins with the position of its
 * first byte in the connection's input (README.md, "Messages of a connection"). Here they wait
 * until all bytes before them have come, and are then read as a stream. No memory is allocated but
 * the entry of a message, and what is held is bounded. */
#ifndef INPUT_H
#define INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "smt.h"

/* A message of a client. */
typedef struct input_message {
    struct input_message *next;
    smt_body *body;
    smt_rpc rpc;
    const uint8_t *data; /* behind the position */
    size_t length;
    size_t taken;
    uint64_t position;
    int is_request;
} input_message;

/* What a client has sent and the server has not read. */
typedef struct input {
    input_message *ready, **ready_end; /* all bytes before them have come */
    input_message *early;              /* by position: bytes before them are missing */
    input_message *read;               /* read wholly: the owner answers and frees them */
    input_message **read_end;
    uint64_t position;                 /* of the first byte that has not come */
    uint64_t end;                      /* where the stream ends, if has_end */
    int has_end;
    size_t held;                       /* bytes in ready and early, with a price for each entry */
    unsigned early_count;
} input;

/* Messages that may wait for bytes before them: a walk over so many is short. Clients have at most
 * 64 requests outstanding. */
#define INPUT_EARLY_MAX 128

typedef enum {
    INPUT_TAKEN,     /* the message is the input's now */
    INPUT_END,       /* the message says where the stream ends, and stays the caller's */
    INPUT_MALFORMED, /* no position, bytes that came before, or bytes behind the end: the client
                      * breaks the rules */
    INPUT_FULL,      /* more is held than may be */
} input_outcome;

void input_init(input *in);
/* Takes a message. Unless it is taken, it stays the caller's. */
input_outcome input_add(input *in, smt_rpc rpc, int is_request, smt_body *body, smt_slice bytes,
                        size_t held_max);
/* Moves up to length bytes out. */
size_t input_read(input *in, uint8_t *out, size_t length);
/* Whether there is something to read. */
int input_has_ready(const input *in);
/* Whether all bytes until the end were read. */
int input_is_at_end(const input *in);
/* Ends the stream behind the bytes that are ready. */
void input_stop(input *in);
/* The next message that was read wholly, or NULL. The caller frees it. */
input_message *input_next_read(input *in);
void input_message_free(input_message *message);
void input_free(input *in);

#endif

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A command of a client in the bytes that it has sent, for servers that do not read it themselves
 * (redis_client.c). It is read on as bytes come; what was read is not read again. */
#ifndef COMMAND_H
#define COMMAND_H

#include <stddef.h>
#include <stdint.h>

/* A word: where it begins in the bytes, and how long it is. */
typedef struct command_word {
    size_t at, length;
} command_word;

typedef struct command {
    command_word *words;
    size_t count, capacity;
    size_t expected; /* words of the command, if has_header */
    int has_header;
    size_t position; /* of the first byte that was not read */
    char fault[80];
} command;

/* What a client may send. */
typedef struct command_limits {
    size_t words;
    size_t word_bytes;
} command_limits;

typedef enum {
    COMMAND_COMPLETE, /* it ends at `position`; without a word it is none */
    COMMAND_PARTIAL,
    COMMAND_MALFORMED, /* `fault` says why, in the server's words */
} command_outcome;

/* Reads on. The bytes are those of the calls before, and more. */
command_outcome command_read(command *c, const uint8_t *bytes, size_t length,
                             command_limits limits);
/* Forgets the command: the next one begins at the first byte. */
void command_next(command *c);
void command_free(command *c);

#endif

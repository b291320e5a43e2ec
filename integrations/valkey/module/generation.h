/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Generations of Valkey, by the layout of its connection types. */
#ifndef GENERATION_H
#define GENERATION_H

#include "session.h"

/* The versions that the module is for, in words. */
#define GENERATIONS_TEXT "valkey-server 8.0, 8.1 and 9.1 (from 9.1.2 on)"

typedef struct generation {
    const char *text;
    int first, last; /* versions, as the module API tells them: 0x00MMmmpp */
    void *type;      /* SMT's connections, laid out for the server */
    /* Why this server is none of the generation, in words behind "this server"; NULL if it is one.
     * It looks at the types that the server has, and calls nothing of them whose place is not
     * certain. */
    const char *(*refusal)(const server_functions *server);
    /* The server's listener of SMT, once the type is registered. */
    connection_listener *(*listener)(const server_functions *server);
} generation;

/* The generation of a version, or NULL. */
const generation *generation_of(int version);

#endif

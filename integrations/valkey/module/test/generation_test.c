/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Tests of generation.c: a server with types of one layout is taken for its own generation alone,
 * and a type that has one function more or less is refused. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "generation.h"

connection_type_8_0 session_type_8_0;
connection_type_8_1 session_type_8_1;
connection_type_9_1 session_type_9_1;

_Static_assert(sizeof(connection_type_8_0) == 30 * sizeof(void *), "8.0 has 30 functions");
_Static_assert(sizeof(connection_type_8_1) == 32 * sizeof(void *), "8.1 has 32");
_Static_assert(sizeof(connection_type_9_1) == 34 * sizeof(void *), "9.1 has 33, and a number");

/* A server's types in memory, with room behind them: other layouts look there. */
#define WORDS 40
static void *tcp[WORDS], *tls[WORDS], *rdma;
static int has_tls;

static const char *name_of_tcp(connection *conn) {
    (void)conn;
    return "tcp";
}

static int id_of_tcp(void) {
    return TYPE_ID_TCP_9_1;
}

static int id_of_tls(void) {
    return TYPE_ID_TLS_9_1;
}

/* A place that is taken. Calling what is there is a fault. */
static void *taken(void) {
    static char nothing;
    return &nothing;
}

static void set(void **word, void *function, size_t size) {
    memcpy(word, function, size);
}

/* Fills the types as a server of 8.0 (closes = 0), 8.1 (tail = 1) or 9.1 (tail = 2, number = 1) has
 * them: words from the sources, not from the structs that are tested. */
static void fill(int closes, int tail, int number) {
    memset(tcp, 0, sizeof(tcp));
    memset(tls, 0, sizeof(tls));
    rdma = NULL;
    has_tls = 1;
    for (int i = 4; i < 25 + closes; i++) tcp[i] = taken();
    for (int i = 1; i < 30 + closes; i++) tls[i] = taken();
    tls[0] = taken();
    if (number) {
        int (*tcp_id)(void) = id_of_tcp, (*tls_id)(void) = id_of_tls;
        set(&tcp[0], &tcp_id, sizeof(tcp_id));
        set(&tls[0], &tls_id, sizeof(tls_id));
        tls[29 + closes] = NULL;
        tls[30 + closes] = taken();
    } else {
        const char *(*name)(connection *) = name_of_tcp;
        set(&tcp[0], &name, sizeof(name));
    }
    for (int i = 0; i < tail; i++) tls[30 + closes + number + i] = taken();
}

static void *by_name(const char *name) {
    if (!strcmp(name, "tcp")) return tcp;
    return !strcmp(name, "tls") && has_tls ? tls : NULL;
}

static void *by_id(int id) {
    switch (id) {
    case TYPE_ID_TCP_9_1:
        return tcp;
    case TYPE_ID_TLS_9_1:
        return has_tls ? tls : NULL;
    default:
        return rdma;
    }
}

/* The answer of a version's generation about the server. */
static const char *refusal(int version) {
    server_functions server = {0};
    if (version >= 0x090000)
        server.connectionByType.by_id = by_id;
    else
        server.connectionByType.by_name = by_name;
    return generation_of(version)->refusal(&server);
}

static void fill_8_0(void) {
    fill(0, 0, 0);
}

static void fill_8_1(void) {
    fill(1, 1, 0);
}

static void fill_9_1(void) {
    fill(1, 2, 1);
}

static void versions_have_generations(void) {
    static const int known[] = {0x080000, 0x080001, 0x08000b, 0x080100, 0x080109, 0x090102, 0x090104};
    static const int unknown[] = {0, 0x070200, 0x080200, 0x090000, 0x090003,
                                  0x090100, 0x090101, 0x090200, 0x0a0000};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) assert(generation_of(known[i]));
    for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
        assert(!generation_of(unknown[i]));
    assert(generation_of(0x080001)->type == &session_type_8_0);
    assert(generation_of(0x080101)->type == &session_type_8_1);
    assert(generation_of(0x090102)->type == &session_type_9_1);
}

static void a_layout_is_its_own_generations_alone(void) {
    static void (*const fills[])(void) = {fill_8_0, fill_8_1, fill_9_1};
    static const int versions[] = {0x080001, 0x080101, 0x090102};
    for (int layout = 0; layout < 3; layout++) {
        fills[layout]();
        for (int version = 0; version < 3; version++) {
            /* `get_type` of the older two and of 9.1 differ in what they return: a version never
             * meets the other kind, since its number and its interface come from one source. */
            if ((layout == 2) != (version == 2)) continue;
            assert((refusal(versions[version]) == NULL) == (layout == version));
        }
    }
}

/* 9.1.0 and 9.1.1 without the number, if they said that they were 9.1.2. */
static void nine_one_without_its_number_is_refused(void) {
    fill_9_1();
    tls[30] = taken();
    tls[31] = taken();
    tls[32] = taken();
    tls[33] = NULL;
    assert(refusal(0x090102));
}

static void each_place_of_a_socket_is_looked_at(void) {
    static void (*const fills[])(void) = {fill_8_0, fill_8_1, fill_9_1};
    static const int versions[] = {0x080001, 0x080101, 0x090102};
    static const int words[] = {30, 32, 34};
    for (int layout = 0; layout < 3; layout++)
        for (int i = 0; i < words[layout]; i++) {
            fills[layout]();
            assert(!refusal(versions[layout]));
            tcp[i] = tcp[i] ? NULL : taken();
            assert(refusal(versions[layout]));
        }
}

static void without_tls_the_last_generation_cannot_be_told(void) {
    fill_8_0();
    has_tls = 0;
    assert(!refusal(0x080001));
    fill_8_1();
    has_tls = 0;
    assert(!refusal(0x080101));
    fill_9_1();
    has_tls = 0;
    assert(strstr(refusal(0x090102), "without TLS"));
}

static void a_server_with_rdma_keeps_its_place(void) {
    fill_9_1();
    rdma = tcp;
    assert(strstr(refusal(0x090102), "RDMA"));
}

int main(void) {
    versions_have_generations();
    a_layout_is_its_own_generations_alone();
    nine_one_without_its_number_is_refused();
    each_place_of_a_socket_is_looked_at();
    without_tls_the_last_generation_cannot_be_told();
    a_server_with_rdma_keeps_its_place();
    puts("generation: 6 tests passed");
    return 0;
}

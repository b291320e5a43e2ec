/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "generation.h"

#include <string.h>

/* Functions that a socket has and has not, in each generation. The run of those that it has ends
 * where `has_pending_data` is: one function more or less in between moves it. */
#define IS_OF_SOCKETS(type)                                                                        \
    ((type)->get_type && !(type)->init && !(type)->cleanup && !(type)->configure &&                \
     (type)->ae_handler && (type)->accept_handler && (type)->addr && (type)->is_local &&           \
     (type)->listen && (type)->conn_create && (type)->conn_create_accepted && (type)->shutdown &&  \
     (type)->close && (type)->connect && (type)->blocking_connect && (type)->accept &&             \
     (type)->write && (type)->writev && (type)->read && (type)->set_write_handler &&               \
     (type)->set_read_handler && (type)->get_last_error && (type)->sync_write &&                   \
     (type)->sync_read && (type)->sync_readline && !(type)->has_pending_data &&                    \
     !(type)->process_pending_data && !(type)->postpone_update_state && !(type)->update_state &&   \
     !(type)->get_peer_cert)

/* The same of TLS, which has the functions at the end that a socket has not. */
#define IS_OF_TLS(type)                                                                            \
    ((type)->init && (type)->cleanup && (type)->configure && (type)->listen &&                     \
     (type)->sync_readline && (type)->has_pending_data && (type)->process_pending_data &&          \
     (type)->postpone_update_state && (type)->update_state && (type)->get_peer_cert)

static const char other_layout[] = "has connections that are laid out otherwise than its version's";

/* A server that was built without TLS has no such type, and says so in its log. The end of the
 * layout, which TLS alone fills, is one that the server of 8.0 and 8.1 asks of TLS alone. */
static const char *refusal_8_0(const server_functions *server) {
    const connection_type_8_0 *tcp = server->connectionByType.by_name("tcp");
    const connection_type_8_0 *tls = server->connectionByType.by_name("tls");
    if (!tcp || !IS_OF_SOCKETS(tcp) || strcmp(tcp->get_type(NULL), "tcp")) return other_layout;
    if (tls && !IS_OF_TLS(tls)) return other_layout;
    return NULL;
}

static const char *refusal_8_1(const server_functions *server) {
    const connection_type_8_1 *tcp = server->connectionByType.by_name("tcp");
    const connection_type_8_1 *tls = server->connectionByType.by_name("tls");
    if (!tcp || !IS_OF_SOCKETS(tcp) || !tcp->close_listener || tcp->is_integrity_checked ||
        strcmp(tcp->get_type(NULL), "tcp"))
        return other_layout;
    if (tls && !(IS_OF_TLS(tls) && tls->close_listener && tls->is_integrity_checked))
        return other_layout;
    return NULL;
}

/* `handlers_in_update_state` came with 9.1.2, and TLS alone shows where it is. */
static const char *refusal_9_1(const server_functions *server) {
    const connection_type_9_1 *tcp = server->connectionByType.by_id(TYPE_ID_TCP_9_1);
    const connection_type_9_1 *tls = server->connectionByType.by_id(TYPE_ID_TLS_9_1);
    if (!tls) return "was built without TLS, by whose connections alone their layout can be told";
    if (!tcp || !IS_OF_SOCKETS(tcp) || !tcp->close_listener || tcp->handlers_in_update_state ||
        tcp->get_peer_user || tcp->is_integrity_checked || tcp->get_type() != TYPE_ID_TCP_9_1)
        return other_layout;
    if (!IS_OF_TLS(tls) || !tls->close_listener || tls->handlers_in_update_state ||
        !tls->get_peer_user || !tls->is_integrity_checked || tls->get_type() != TYPE_ID_TLS_9_1)
        return other_layout;
    if (server->connectionByType.by_id(TYPE_ID_RDMA_9_1))
        return "has connections by RDMA, whose place SMT takes in Valkey 9.1: use one without RDMA";
    return NULL;
}

static connection_listener *listener_by_name(const server_functions *server) {
    return server->listenerByType.by_name("smt");
}

static connection_listener *listener_by_id(const server_functions *server) {
    return server->listenerByType.by_id(TYPE_ID_RDMA_9_1);
}

static const generation generations[] = {
    {"8.0", 0x080000, 0x0800ff, &session_type_8_0, refusal_8_0, listener_by_name},
    {"8.1", 0x080100, 0x0801ff, &session_type_8_1, refusal_8_1, listener_by_name},
    {"9.1", 0x090102, 0x0901ff, &session_type_9_1, refusal_9_1, listener_by_id},
};

const generation *generation_of(int version) {
    for (size_t i = 0; i < sizeof(generations) / sizeof(*generations); i++)
        if (version >= generations[i].first && version <= generations[i].last)
            return &generations[i];
    return NULL;
}

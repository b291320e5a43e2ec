/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* SMT for C: a server endpoint in an event loop of the program's own.
 *
 * 1. smt_server_open gives an endpoint. Add smt_endpoint_fd to the event loop as readable,
 *    level-triggered.
 * 2. When the descriptor is readable, call smt_endpoint_process. It never blocks, and it serves
 *    timers too.
 * 3. Call smt_endpoint_next_event until it returns 0. Messages that are given from then on leave
 *    together with smt_endpoint_flush, which also sends what events have caused.
 *
 * One thread at a time may use an endpoint and what came out of it. No function panics across this
 * interface: a fault of the library itself ends the process. */
#ifndef SMT_H
#define SMT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Codes of errors; they keep their numbers. */
enum {
    SMT_OK = 0,
    SMT_ERROR_INVALID = 1,     /* caller: an argument is missing or no text */
    SMT_ERROR_CREDENTIALS = 2, /* caller: a certificate, key or authority cannot be used */
    SMT_ERROR_OPEN = 3,        /* environment: the address cannot be bound, or memory is short */
    SMT_ERROR_BLOCKED = 4,     /* limit: as many messages wait as the peer takes */
    SMT_ERROR_NO_SESSION = 5,  /* caller: the session has ended */
    SMT_ERROR_NO_RPC = 6,      /* caller: answered before, or its caller has given up */
    SMT_ERROR_TOO_LARGE = 7,   /* limit: the peer does not take a message of this size */
    SMT_ERROR_USED_UP = 8,     /* limit: the session's ids are used up, or a certificate ends */
    SMT_ERROR_SYSTEM = 9,      /* environment: a system call has failed */
};

/* An error: whose fault it was, and what to do. */
typedef struct smt_error {
    int32_t code;
    char text[508];
} smt_error;

/* Bytes that somebody else owns. */
typedef struct smt_slice {
    const uint8_t *data;
    size_t length;
} smt_slice;

/* The name of a message: its session, and its id within it. */
typedef struct smt_rpc {
    uint64_t session;
    uint64_t id;
} smt_rpc;

typedef struct smt_endpoint smt_endpoint;
/* The bytes of a message that has arrived. */
typedef struct smt_body smt_body;

/* Whether clients are asked for certificates. */
enum {
    SMT_CLIENT_AUTH_NONE = 0,
    SMT_CLIENT_AUTH_OPTIONAL = 1,
    SMT_CLIENT_AUTH_REQUIRED = 2,
};

/* Choices of a server. Numbers that are 0 stand for the library's defaults. */
typedef struct smt_server_options {
    const char *address;     /* host:port; port 0 lets the system choose */
    const char *certificate; /* PEM file: the chain, leaf first */
    const char *key;         /* PEM file: the leaf's private key */
    const char *authority;   /* PEM file: authorities of clients; NULL with SMT_CLIENT_AUTH_NONE */
    const char *state;       /* file of the server's own, by which clients of its last run learn at
                              * once that it has ended; NULL: they wait for their own limit */
    uint32_t client_auth;    /* SMT_CLIENT_AUTH_... */
    uint32_t message_limit;  /* bytes of the largest message that is taken */
    uint64_t sessions_max;   /* sessions at once */
    uint64_t memory_max;     /* bytes for messages that wait or are incomplete, and for replies */
    const char *const *revocation_lists; /* PEM or DER files: clients whose certificates are in a
                                          * list are refused, as are those of authorities without
                                          * a list, and all when a list has expired */
    size_t revocation_lists_count;       /* 0: certificates are not looked up */
} smt_server_options;

/* A client, as its handshake has proved it. */
typedef struct smt_peer {
    char ip[46];            /* text, without brackets */
    uint16_t port;
    char local_ip[46];      /* the address that the client called; empty if it is not known */
    uint16_t local_port;
    smt_slice common_name;  /* of the certificate's subject; length 0 if there is none */
    smt_slice dns_name;     /* the first of its alternative names; length 0 if there is none */
    smt_slice certificate;  /* the leaf in DER; length 0 if the client showed none */
} smt_peer;

/* Kinds of events; they keep their numbers. */
enum {
    SMT_EVENT_OTHER = 0,        /* nothing for a server to do */
    SMT_EVENT_ACCEPTED = 1,     /* rpc.session, peer */
    SMT_EVENT_REFUSED = 2,      /* text: a client was not taken; peer has its address */
    SMT_EVENT_REQUEST = 3,      /* rpc, body, bytes: answer with smt_reply */
    SMT_EVENT_ONE_WAY = 4,      /* rpc, body, bytes */
    SMT_EVENT_CANCELLED = 5,    /* rpc: its caller has given the request up */
    SMT_EVENT_SENT = 6,         /* rpc, delivered: a one-way message of smt_send has ended */
    SMT_EVENT_UNBLOCKED = 7,    /* rpc.session: after SMT_ERROR_BLOCKED */
    SMT_EVENT_SESSION_ENDED = 8, /* rpc.session, text */
    SMT_EVENT_DISTRUSTED = 9     /* rpc.session, text: of smt_endpoint_next_distrusted alone */
};

/* An event. Whatever it points to lives until the next event of the same endpoint is asked for; a
 * body lives until smt_body_free. */
typedef struct smt_event {
    uint32_t kind;
    uint32_t delivered;   /* SENT: 1 if the peer has accepted the message for delivery */
    smt_rpc rpc;
    void *data;           /* of smt_session_set_data, of the session in rpc */
    smt_body *body;       /* REQUEST, ONE_WAY: the receiver of the event frees it */
    smt_slice bytes;      /* of the body */
    const smt_peer *peer; /* ACCEPTED, REFUSED */
    smt_slice text;       /* REFUSED, SESSION_ENDED, DISTRUSTED: the reason, UTF-8 */
} smt_event;

/* Opens a server. Returns NULL after filling *error. */
smt_endpoint *smt_server_open(const smt_server_options *options, smt_error *error);
/* Reads the files of certificate, key, authority and revocation lists again: clients that connect
 * from then on meet what is in them. Returns SMT_OK, or a code: then all is as it was. The files are
 * regular ones. Of the other options client_auth alone counts.
 * With judges_clients the clients of live sessions are judged by what was read, of which
 * smt_endpoint_next_distrusted tells. For a minute newcomers are judged too, whose handshakes may
 * have begun before. */
int32_t smt_server_reload(smt_endpoint *endpoint, const smt_server_options *options,
                          int judges_clients, smt_error *error);
/* Sends what may leave, closes all sessions and frees the endpoint. NULL is taken. */
void smt_endpoint_close(smt_endpoint *endpoint);
/* The descriptor to poll. It belongs to the endpoint. */
int smt_endpoint_fd(const smt_endpoint *endpoint);
/* The port at which the endpoint listens. */
uint16_t smt_endpoint_port(const smt_endpoint *endpoint);
/* Receives all that has come and fires timers that are due. Returns SMT_OK or a code. */
int32_t smt_endpoint_process(smt_endpoint *endpoint, smt_error *error);
/* Fills *event and returns 1, or returns 0 if there is none. */
int smt_endpoint_next_event(smt_endpoint *endpoint, smt_event *event);
/* Fills *event with a live session whose client would not be let in any more, by the last
 * smt_server_reload, and returns 1; or returns 0 if there is none further. Its owner closes it, or
 * not. */
int smt_endpoint_next_distrusted(smt_endpoint *endpoint, smt_event *event);
/* Holds messages back until smt_endpoint_flush, a millisecond at most. */
void smt_endpoint_cork(smt_endpoint *endpoint);
/* Sends the messages that were held back. */
void smt_endpoint_flush(smt_endpoint *endpoint);

/* Answers a request with these bytes, which are copied. Returns SMT_OK or a code. */
int32_t smt_reply(smt_endpoint *endpoint, smt_rpc rpc, const smt_slice *slices, size_t count,
                  smt_error *error);
/* Sends a one-way message of these bytes, which are copied, and names it in *sent. SMT_EVENT_SENT
 * follows. Returns SMT_OK or a code. */
int32_t smt_send(smt_endpoint *endpoint, uint64_t session, const smt_slice *slices, size_t count,
                 smt_rpc *sent, smt_error *error);
/* Ties the caller's own data to a session: later events of it have the pointer. NULL unties. */
void smt_session_set_data(smt_endpoint *endpoint, uint64_t session, void *data);
/* Closes a session; SMT_EVENT_SESSION_ENDED may follow. One that has ended is taken. */
void smt_session_close(smt_endpoint *endpoint, uint64_t session);
/* The same for one of SMT_EVENT_DISTRUSTED: its client learns why. */
void smt_session_close_distrusted(smt_endpoint *endpoint, uint64_t session);
/* Frees a body. NULL is taken. */
void smt_body_free(smt_body *body);

#ifdef __cplusplus
}
#endif

#endif

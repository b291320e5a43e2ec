// SPDX-License-Identifier: Apache-2.0 OR MIT
// TLS 1.3 in the kernel (kTLS) under key updates (RFC 8446 section 4.6.3): one process sends
// numbered blocks over TCP on loopback, another compares them; both take new keys after so many
// records.
//
//     rekey CIPHER EPOCHS RECORDS      aes-128-gcm, aes-256-gcm or chacha20-poly1305
//
// Keys are made of the epoch's number: the kernel's rekeying is looked at, no handshake. Prints one
// line: "epochs E of N, B bytes equal: OUTCOME". Exit code 0 if all epochs came through, 2 if the
// kernel refuses a second key, 1 otherwise.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef TCP_ULP
#define TCP_ULP 31
#endif
#ifndef SOL_TLS
#define SOL_TLS 282
#endif
#ifndef EKEYEXPIRED
#define EKEYEXPIRED 127
#endif

enum { RECORD = 4096, HANDSHAKE = 22, KEY_UPDATE = 24, DONE = 0, FAILED = 1, REFUSED = 2 };

union crypto {
    struct tls_crypto_info info;
    struct tls12_crypto_info_aes_gcm_128 aes128;
    struct tls12_crypto_info_aes_gcm_256 aes256;
    struct tls12_crypto_info_chacha20_poly1305 chacha;
};

static const char *cipher;
static int epochs, records;

// The keys of an epoch: any bytes that no other epoch has.
static int set_key(int socket, int direction, int epoch) {
    union crypto crypto;
    memset(&crypto, epoch + 1, sizeof crypto);
    crypto.info.version = TLS_1_3_VERSION;
    socklen_t size;
    if (!strcmp(cipher, "aes-128-gcm")) {
        crypto.info.cipher_type = TLS_CIPHER_AES_GCM_128;
        memset(crypto.aes128.rec_seq, 0, sizeof crypto.aes128.rec_seq);
        size = sizeof crypto.aes128;
    } else if (!strcmp(cipher, "aes-256-gcm")) {
        crypto.info.cipher_type = TLS_CIPHER_AES_GCM_256;
        memset(crypto.aes256.rec_seq, 0, sizeof crypto.aes256.rec_seq);
        size = sizeof crypto.aes256;
    } else {
        crypto.info.cipher_type = TLS_CIPHER_CHACHA20_POLY1305;
        memset(crypto.chacha.rec_seq, 0, sizeof crypto.chacha.rec_seq);
        size = sizeof crypto.chacha;
    }
    return setsockopt(socket, SOL_TLS, direction, &crypto, size);
}

static void end(int code, int epoch, long bytes, const char *outcome) {
    printf("epochs %d of %d, %ld bytes equal: %s\n", epoch, epochs, bytes, outcome);
    fflush(stdout);
    exit(code);
}

static void check(int result, const char *what) {
    if (result < 0) {
        printf("%s: %s\n", what, strerror(errno));
        fflush(stdout);
        exit(FAILED);
    }
}

static void fill(unsigned char *block, long number) {
    for (int at = 0; at < RECORD; at++)
        block[at] = (unsigned char)(number * 31 + at);
}

static void send_key_update(int socket) {
    unsigned char message[] = {KEY_UPDATE, 0, 0, 1, 0};
    char space[CMSG_SPACE(1)] = {0};
    struct iovec bytes = {message, sizeof message};
    struct msghdr header = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_TLS;
    control->cmsg_type = TLS_SET_RECORD_TYPE;
    control->cmsg_len = CMSG_LEN(1);
    *CMSG_DATA(control) = HANDSHAKE;
    check(sendmsg(socket, &header, 0), "sending KeyUpdate");
}

// The sender ends quietly: the receiver tells what came of it.
static void be_sender(int socket) {
    unsigned char block[RECORD];
    long number = 0;
    for (int epoch = 0; epoch < epochs; epoch++) {
        if (epoch > 0) {
            send_key_update(socket);
            if (set_key(socket, TLS_TX, epoch) < 0) {
                printf("sender: a second key: %s\n", strerror(errno));
                fflush(stdout);
                exit(REFUSED);
            }
        }
        for (int record = 0; record < records; record++) {
            fill(block, number++);
            for (int sent = 0; sent < RECORD;) {
                int written = (int)write(socket, block + sent, RECORD - sent);
                check(written, "writing");
                sent += written;
            }
        }
    }
    exit(DONE);
}

// Receives at most so many bytes. Returns 0 at a KeyUpdate.
static int receive(int socket, unsigned char *bytes, int most) {
    char space[CMSG_SPACE(1)] = {0};
    struct iovec into = {bytes, (size_t)most};
    struct msghdr header = {.msg_iov = &into, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    int length = (int)recvmsg(socket, &header, 0);
    check(length, "receiving");
    struct cmsghdr *control = CMSG_FIRSTHDR(&header);
    int is_handshake = control && control->cmsg_level == SOL_TLS && control->cmsg_type == TLS_GET_RECORD_TYPE &&
                       *CMSG_DATA(control) == HANDSHAKE;
    if (is_handshake)
        return length == 5 && bytes[0] == KEY_UPDATE ? 0 : -1;
    return length > 0 ? length : -1;
}

static void be_receiver(int socket) {
    unsigned char block[RECORD], expected[RECORD];
    long bytes = 0;
    for (int epoch = 0; epoch < epochs; epoch++) {
        if (epoch > 0) {
            if (receive(socket, block, RECORD) != 0)
                end(FAILED, epoch, bytes, "no KeyUpdate where one was sent");
            if (set_key(socket, TLS_RX, epoch) < 0) {
                char text[100];
                snprintf(text, sizeof text, "a second key is refused (%s)", strerror(errno));
                end(REFUSED, epoch, bytes, text);
            }
        }
        for (int record = 0; record < records; record++) {
            for (int came = 0; came < RECORD;) {
                int length = receive(socket, block + came, RECORD - came);
                if (length <= 0)
                    end(FAILED, epoch, bytes, "the stream ended early");
                came += length;
            }
            fill(expected, bytes / RECORD);
            if (memcmp(block, expected, RECORD))
                end(FAILED, epoch, bytes, "other bytes came than were sent");
            bytes += RECORD;
        }
    }
    end(DONE, epochs, bytes, "rekeyed");
}

int main(int count, char **arguments) {
    if (count != 4)
        return fprintf(stderr, "usage: rekey CIPHER EPOCHS RECORDS\n"), FAILED;
    cipher = arguments[1];
    epochs = atoi(arguments[2]);
    records = atoi(arguments[3]);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    check(bind(listener, (void *)&address, size), "binding");
    check(listen(listener, 1), "listening");
    check(getsockname(listener, (void *)&address, &size), "asking for the port");
    check(connect(client, (void *)&address, size), "connecting");
    int server = accept(listener, 0, 0);
    check(server, "accepting");
    check(setsockopt(client, IPPROTO_TCP, TCP_ULP, "tls", 4), "TLS in the kernel");
    check(setsockopt(server, IPPROTO_TCP, TCP_ULP, "tls", 4), "TLS in the kernel");
    check(set_key(client, TLS_TX, 0), "the first key of the sender");
    check(set_key(server, TLS_RX, 0), "the first key of the receiver");
    pid_t sender = fork();
    if (sender == 0)
        be_sender(client);
    close(client);
    be_receiver(server);
}

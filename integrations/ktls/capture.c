// SPDX-License-Identifier: Apache-2.0 OR MIT
// TCP segments that the kernel's TLS (kTLS) has sealed, as packets on loopback: the vector
// ktls_segments.json, by which a NIC's engine is held against a real sender of TLS over TCP.
//
//     capture
//
// Loopback gets an MTU of 1,500 bytes and no TSO of its own: the kernel cuts each segment as a NIC
// would, behind the point where a NIC would get it. Keys, numbers and plaintext are patterns. Each
// record is one call of send and one segment, and the next waits until it has been read.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <linux/tls.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef TCP_ULP
#define TCP_ULP 31
#endif
#ifndef SOL_TLS
#define SOL_TLS 282
#endif

enum { MTU = 1500, FIRST_NUMBER = 70000, LONGEST = 16384, OVERHEAD = 22 };

static const int lengths[] = { 100, 1400, 5000, LONGEST };

static void fail(const char *what) {
    fprintf(stderr, "capture: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void check(int result, const char *what) {
    if (result < 0)
        fail(what);
}

static void hex(const void *bytes, int length) {
    for (int at = 0; at < length; at++)
        printf("%02x", ((const unsigned char *)bytes)[at]);
}

// Loopback as a cable of an Ethernet's MTU, before a NIC without offloads.
static void shape_loopback(void) {
    int control = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq request = { .ifr_name = "lo" };
    request.ifr_mtu = MTU;
    check(ioctl(control, SIOCSIFMTU, &request), "the MTU");
    struct ethtool_value off = { .cmd = ETHTOOL_STSO, .data = 0 };
    request.ifr_data = (char *)&off;
    check(ioctl(control, SIOCETHTOOL, &request), "TSO off");
    off.cmd = ETHTOOL_SGRO;
    check(ioctl(control, SIOCETHTOOL, &request), "GRO off");
    close(control);
}

static int packet_socket(void) {
    int capture = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL));
    check(capture, "a packet socket");
    struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
    at.sll_ifindex = if_nametoindex("lo");
    check(bind(capture, (struct sockaddr *)&at, sizeof at), "loopback");
    struct timeval wait = { .tv_sec = 5 };
    check(setsockopt(capture, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait), "a timeout");
    return capture;
}

// A connection over loopback: the sender, and the receiver, which reads what the sender has sealed.
static void connection(int *sender, int *receiver) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = { .sin_family = AF_INET };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    check(bind(listener, (struct sockaddr *)&address, sizeof address), "bind");
    check(listen(listener, 1), "listen");
    check(getsockname(listener, (struct sockaddr *)&address, &size), "the port");
    *sender = socket(AF_INET, SOCK_STREAM, 0);
    check(connect(*sender, (struct sockaddr *)&address, sizeof address), "connect");
    *receiver = accept(listener, NULL, NULL);
    check(*receiver, "accept");
    int on = 1;
    check(setsockopt(*sender, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
    check(setsockopt(*sender, IPPROTO_TCP, TCP_ULP, "tls", 4), "TLS in this kernel");
    close(listener);
}

// Key bytes from 1 up, IV bytes from 0xA0 up, in the kernel's two parts: salt and IV.
static void set_key(int sender, int cipher) {
    union {
        struct tls_crypto_info info;
        struct tls12_crypto_info_aes_gcm_128 aes128;
        struct tls12_crypto_info_aes_gcm_256 aes256;
        struct tls12_crypto_info_chacha20_poly1305 chacha;
    } crypto = { .info = { .version = TLS_1_3_VERSION, .cipher_type = cipher } };
    unsigned char key[32], iv[12];
    for (int at = 0; at < 32; at++)
        key[at] = at + 1;
    for (int at = 0; at < 12; at++)
        iv[at] = 0xA0 + at;
    unsigned char number[8] = { 0 };
    for (int at = 0; at < 8; at++)
        number[7 - at] = (unsigned long)FIRST_NUMBER >> 8 * at;
    socklen_t size;
#define SET(of, salt_bytes, key_bytes)                                                             \
    memcpy(crypto.of.key, key, key_bytes);                                                         \
    memcpy(crypto.of.iv, iv + (salt_bytes), 12 - (salt_bytes));                                    \
    memcpy(crypto.of.rec_seq, number, 8);                                                          \
    size = sizeof crypto.of
    if (cipher == TLS_CIPHER_AES_GCM_128) {
        SET(aes128, 4, 16);
        memcpy(crypto.aes128.salt, iv, 4);
    } else if (cipher == TLS_CIPHER_AES_GCM_256) {
        SET(aes256, 4, 32);
        memcpy(crypto.aes256.salt, iv, 4);
    } else {
        SET(chacha, 0, 32);
    }
#undef SET
    check(setsockopt(sender, SOL_TLS, TLS_TX, &crypto, size), "a key");
}

// Sends a record, reads it, and prints the packets that had it.
static void record(int sender, int receiver, int capture, int number, int length) {
    static unsigned char plaintext[LONGEST], sealed[LONGEST + OVERHEAD], packet[1 << 16];
    for (int at = 0; at < length; at++)
        plaintext[at] = number * 31 + at;
    check(send(sender, plaintext, length, 0) == length ? 0 : -1, "send");
    int whole = length + OVERHEAD;
    check(recv(receiver, sealed, whole, MSG_WAITALL) == whole ? 0 : -1, "receive");
    struct sockaddr_in own;
    socklen_t size = sizeof own;
    check(getsockname(sender, (struct sockaddr *)&own, &size), "the sender's port");
    printf("   {\"length\": %d, \"packets\": [", length);
    for (int seen = 0, first = 1; seen < whole;) {
        struct sockaddr_ll from;
        socklen_t bytes = sizeof from;
        int got = recvfrom(capture, packet, sizeof packet, 0, (struct sockaddr *)&from, &bytes);
        check(got, "a packet");
        int ip = (packet[0] & 15) * 4, tcp = (packet[ip + 12] >> 4) * 4;
        int is_own = packet[9] == IPPROTO_TCP && !memcmp(packet + ip, &own.sin_port, 2);
        // Loopback shows each packet twice.
        if (from.sll_pkttype != PACKET_OUTGOING || !is_own || got == ip + tcp)
            continue;
        printf("%s\n    \"", first ? "" : ",");
        hex(packet, got);
        printf("\"");
        first = 0;
        seen += got - ip - tcp;
    }
    printf("]}");
}

static void connect_and_send(const char *name, int suite, int cipher, int records) {
    int sender, receiver, capture = packet_socket();
    connection(&sender, &receiver);
    set_key(sender, cipher);
    printf("  {\"suite\": \"%s\", \"code\": %d, \"records\": [\n", name, suite);
    for (int number = 0; number < records; number++) {
        record(sender, receiver, capture, number, lengths[number]);
        printf("%s\n", number + 1 < records ? "," : "");
    }
    printf("  ]}");
    close(sender);
    close(receiver);
    close(capture);
}

int main(void) {
    shape_loopback();
    struct utsname system;
    check(uname(&system), "uname");
    printf("{\"kernel\": \"%s\", ", system.release);
    printf("\"first_number\": %d, \"flows\": [\n", FIRST_NUMBER);
    connect_and_send("TLS_AES_128_GCM_SHA256", 0x1301, TLS_CIPHER_AES_GCM_128, 4);
    printf(",\n");
    connect_and_send("TLS_AES_256_GCM_SHA384", 0x1302, TLS_CIPHER_AES_GCM_256, 3);
    printf(",\n");
    connect_and_send("TLS_CHACHA20_POLY1305_SHA256", 0x1303, TLS_CIPHER_CHACHA20_POLY1305, 3);
    printf("\n]}\n");
    return 0;
}

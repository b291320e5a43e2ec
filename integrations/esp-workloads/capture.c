// SPDX-License-Identifier: Apache-2.0 OR MIT
// Reads all frames of a device until SIGTERM, and then says how many there were: of ESP by SPI, of
// IP without ESP, and how many held each of the patterns.
//     capture DEVICE [PATTERN IN HEXADECIMAL DIGITS...]
// Prints a line: esp=N other=N spi:SPI=N ... PATTERN=N ...
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATTERNS 8
#define PATTERN_BYTES 64
#define SPIS 16
#define FRAME 70000
#define SHOWN 256

struct pattern {
    const char *text;
    unsigned char bytes[PATTERN_BYTES];
    size_t length;
    unsigned long found;
};

static struct pattern patterns[PATTERNS];
static int pattern_count;
static struct {
    unsigned spi;
    unsigned long frames;
} spis[SPIS];
static unsigned long esp, other;
static volatile sig_atomic_t has_ended;

static void end(int signal) {
    (void)signal;
    has_ended = 1;
}

static void count_spi(unsigned spi) {
    for (int at = 0; at < SPIS; at++) {
        if (spis[at].frames == 0)
            spis[at].spi = spi;
        if (spis[at].spi == spi) {
            spis[at].frames++;
            return;
        }
    }
}

// The first frame that holds a pattern, for whoever did not expect one.
static void show(const char *pattern, const unsigned char *frame, size_t length) {
    static int has_shown;
    if (has_shown++)
        return;
    fprintf(stderr, "%s in %zu bytes: ", pattern, length);
    for (size_t at = 0; at < length && at < SHOWN; at++)
        fprintf(stderr, "%02x", frame[at]);
    fprintf(stderr, "\n");
}

static void look(const unsigned char *frame, size_t length) {
    if (length < ETH_HLEN + 20)
        return;
    unsigned type = frame[12] << 8 | frame[13];
    const unsigned char *ip = frame + ETH_HLEN;
    size_t header = (ip[0] & 15) * 4u;
    if (type == ETH_P_IP && ip[9] == IPPROTO_ESP && length >= ETH_HLEN + header + 8) {
        unsigned spi;
        memcpy(&spi, ip + header, 4);
        count_spi(ntohl(spi));
        esp++;
    } else if (type == ETH_P_IP) {
        other++;
    }
    for (int at = 0; at < pattern_count; at++)
        if (memmem(frame, length, patterns[at].bytes, patterns[at].length)) {
            patterns[at].found++;
            show(patterns[at].text, frame, length);
        }
}

static void add_pattern(const char *text) {
    struct pattern *of = &patterns[pattern_count++];
    of->text = text;
    for (; text[0] && text[1] && of->length < PATTERN_BYTES; text += 2) {
        char digits[3] = {text[0], text[1], 0};
        of->bytes[of->length++] = (unsigned char)strtoul(digits, NULL, 16);
    }
}

int main(int count, char **arguments) {
    if (count < 2 || count > 2 + PATTERNS)
        return fprintf(stderr, "usage: capture DEVICE [PATTERN...]\n"), 2;
    for (int at = 2; at < count; at++)
        add_pattern(arguments[at]);
    int reader = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    struct sockaddr_ll place = {.sll_family = AF_PACKET,
                                .sll_protocol = htons(ETH_P_ALL),
                                .sll_ifindex = (int)if_nametoindex(arguments[1])};
    int room = 32 << 20;
    if (reader < 0 || place.sll_ifindex == 0 || bind(reader, (void *)&place, sizeof place) < 0 ||
        setsockopt(reader, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) < 0)
        return perror("capture"), 1;
    struct sigaction action = {.sa_handler = end};
    sigaction(SIGTERM, &action, NULL);
    fprintf(stderr, "ready\n");
    static unsigned char frame[FRAME];
    // Frames that wait when the end comes are read too.
    for (;;) {
        ssize_t length = recv(reader, frame, sizeof frame, has_ended ? MSG_DONTWAIT : 0);
        if (length > 0)
            look(frame, (size_t)length);
        else if (has_ended)
            break;
    }
    struct tpacket_stats lost = {0};
    socklen_t bytes = sizeof lost;
    getsockopt(reader, SOL_PACKET, PACKET_STATISTICS, &lost, &bytes);
    if (lost.tp_drops)
        return fprintf(stderr, "capture: %u frames were not read\n", lost.tp_drops), 1;
    printf("esp=%lu other=%lu", esp, other);
    for (int at = 0; at < SPIS && spis[at].frames; at++)
        printf(" spi:%08x=%lu", spis[at].spi, spis[at].frames);
    for (int at = 0; at < pattern_count; at++)
        printf(" %s=%lu", patterns[at].text, patterns[at].found);
    printf("\n");
    return 0;
}

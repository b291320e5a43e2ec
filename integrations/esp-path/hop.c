// SPDX-License-Identifier: Apache-2.0 OR MIT
// A network between two namespaces that loses, reorders, replays and forges packets: a TAP device
// "wire" in each namespace, and this program between them.
//
//     hop NAMESPACE NAMESPACE LOSS REORDER REPLAY FORGE SEED
//
// LOSS, REORDER, REPLAY and FORGE are frames in a million. A frame that is reordered waits for up
// to eight others. A frame that is replayed was seen up to 64 frames before. A forged frame is a
// copy with one bit of its last 16 bytes changed, beside the true one. Frames that are not IP, by
// which hosts find each other, pass. Prints "ready" once the devices are there, and counts at
// SIGTERM.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { FRAME = 2048, SEEN = 64, WAITING = 8 };

struct frame {
    int length;
    unsigned char bytes[FRAME];
};

struct direction {
    int to;
    struct frame seen[SEEN];
    unsigned next_seen;
    struct frame held;
    int held_for;
};

static struct direction directions[2];
static uint64_t state;
static unsigned long passed, lost, reordered, replayed, forged;
static volatile sig_atomic_t has_ended;

static void end(int signal) {
    (void)signal;
    has_ended = 1;
}

// xorshift64*: the same frames for the same seed.
static uint32_t next_random(void) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 0x2545F4914F6CDD1DULL) >> 32);
}

static int happens(unsigned long in_a_million) { return next_random() % 1000000 < in_a_million; }

static int open_device(const char *name_space) {
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", name_space);
    int space = open(path, O_RDONLY), device = -1;
    if (space >= 0 && setns(space, CLONE_NEWNET) == 0)
        device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    strcpy(request.ifr_name, "wire");
    if (device < 0 || ioctl(device, TUNSETIFF, &request) < 0) {
        perror(path);
        exit(1);
    }
    close(space);
    return device;
}

static void deliver(struct direction *way, const struct frame *frame) {
    // A device whose queue is full loses the frame, as a wire would.
    if (write(way->to, frame->bytes, (size_t)frame->length) == frame->length)
        passed++;
}

static void release_held(struct direction *way) {
    if (way->held.length > 0)
        deliver(way, &way->held);
    way->held.length = 0;
}

static int is_ip(const struct frame *frame) {
    if (frame->length < 34)
        return 0;
    int kind = frame->bytes[12] << 8 | frame->bytes[13];
    // Neighbour discovery is IPv6 too: next header 58.
    return kind == 0x0800 || (kind == 0x86DD && frame->bytes[20] != 58);
}

// Changes one bit of the ICV or of what is before it, and the checksum of UDP with it: the forger
// knows how to compute that.
static void forge(struct frame *copy) {
    int at = copy->length - 1 - (int)(next_random() % 16);
    unsigned char bit = (unsigned char)(1 << next_random() % 8);
    int is_v6 = copy->bytes[12] == 0x86;
    int udp_at = 14 + (is_v6 ? 40 : 20);
    int is_udp = copy->bytes[is_v6 ? 20 : 23] == 17;
    unsigned char *sum = copy->bytes + udp_at + 6;
    if (is_udp && !is_v6) {
        // IPv4 does without.
        sum[0] = sum[1] = 0;
    } else if (is_udp) {
        // RFC 1624: the old word goes out of the sum, and the new one in.
        unsigned shift = (at - udp_at) % 2 ? 0 : 8;
        uint32_t old_byte = copy->bytes[at], new_byte = old_byte ^ bit;
        uint32_t value = (uint32_t)(~(sum[0] << 8 | sum[1]) & 0xFFFF);
        value += ~(old_byte << shift) & 0xFFFF;
        value += new_byte << shift;
        while (value >> 16)
            value = (value & 0xFFFF) + (value >> 16);
        value = ~value & 0xFFFF;
        sum[0] = (unsigned char)(value >> 8);
        sum[1] = (unsigned char)value;
    }
    copy->bytes[at] ^= bit;
}

static void pass(struct direction *way, const struct frame *frame, unsigned long *rates) {
    if (!is_ip(frame)) {
        deliver(way, frame);
        return;
    }
    way->seen[way->next_seen++ % SEEN] = *frame;
    if (way->held.length > 0 && --way->held_for <= 0)
        release_held(way);
    if (happens(rates[0])) {
        lost++;
    } else if (way->held.length == 0 && happens(rates[1])) {
        way->held = *frame;
        way->held_for = 1 + (int)(next_random() % WAITING);
        reordered++;
    } else {
        deliver(way, frame);
    }
    if (happens(rates[2])) {
        const struct frame *old = &way->seen[next_random() % SEEN];
        if (old->length > 0) {
            deliver(way, old);
            replayed++;
        }
    }
    if (happens(rates[3])) {
        struct frame copy = *frame;
        forge(&copy);
        deliver(way, &copy);
        forged++;
    }
}

int main(int count, char **arguments) {
    if (count != 8)
        return fprintf(stderr, "usage: hop NAMESPACE NAMESPACE LOSS REORDER REPLAY FORGE SEED\n"), 1;
    unsigned long rates[4];
    for (int at = 0; at < 4; at++)
        rates[at] = strtoul(arguments[3 + at], 0, 10);
    state = strtoull(arguments[7], 0, 10) * 2 + 1;
    signal(SIGTERM, end);
    int devices[2] = {open_device(arguments[1]), open_device(arguments[2])};
    directions[0].to = devices[1];
    directions[1].to = devices[0];
    printf("ready\n");
    fflush(stdout);
    struct pollfd ready[2] = {{devices[0], POLLIN, 0}, {devices[1], POLLIN, 0}};
    static struct frame frame;
    while (!has_ended) {
        int some = poll(ready, 2, 5);
        for (int at = 0; at < 2; at++) {
            // A frame that no other follows is not held for ever.
            if (some == 0)
                release_held(&directions[at]);
            for (int turn = 0; some > 0 && turn < 64; turn++) {
                frame.length = (int)read(devices[at], frame.bytes, FRAME);
                if (frame.length <= 0)
                    break;
                pass(&directions[at], &frame, rates);
            }
        }
    }
    printf("passed %lu lost %lu reordered %lu replayed %lu forged %lu\n", passed, lost, reordered, replayed, forged);
    return 0;
}

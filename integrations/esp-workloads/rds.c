// SPDX-License-Identifier: Apache-2.0 OR MIT
// Messages over RDS, which the kernel carries over TCP.
//     rds receive ADDRESS PORT MESSAGES       writes them to its output, and answers the last
//     rds send FROM FROM-PORT TO PORT CHUNK   sends its input in two halves, and waits for the answer
// Between the halves the sender says "half", and waits for SIGUSR1.
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RDS_FAMILY 21
#define LONGEST (64 << 10)
#define INPUT (4 << 20)

static struct sockaddr_in place(const char *address, const char *port) {
    struct sockaddr_in of = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
    inet_pton(AF_INET, address, &of.sin_addr);
    return of;
}

static int bound(struct sockaddr_in at) {
    int opened = socket(RDS_FAMILY, SOCK_SEQPACKET, 0);
    if (opened < 0 || bind(opened, (void *)&at, sizeof at) < 0) {
        perror("rds");
        exit(1);
    }
    return opened;
}

static void send_to(int socket, struct sockaddr_in *to, const char *bytes, size_t length) {
    while (sendto(socket, bytes, length, 0, (void *)to, sizeof *to) < 0) {
        struct pollfd room = {socket, POLLOUT, 0};
        if (errno != ENOBUFS && errno != EAGAIN && errno != EINTR) {
            perror("rds: send");
            exit(1);
        }
        poll(&room, 1, 100);
    }
}

static int receive(char **arguments) {
    static char message[LONGEST];
    struct sockaddr_in from;
    int socket = bound(place(arguments[0], arguments[1]));
    fprintf(stderr, "ready\n");
    for (int left = atoi(arguments[2]); left > 0; left--) {
        socklen_t bytes = sizeof from;
        ssize_t length = recvfrom(socket, message, sizeof message, 0, (void *)&from, &bytes);
        if (length < 0)
            return perror("rds: receive"), 1;
        fwrite(message, 1, (size_t)length, stdout);
    }
    fflush(stdout);
    send_to(socket, &from, "all", 3);
    // RDS forgets what is not acknowledged when its socket is closed. Killed by the test.
    pause();
    return 0;
}

static int transmit(char **arguments) {
    static char input[INPUT];
    size_t length = fread(input, 1, sizeof input, stdin), chunk = (size_t)atoi(arguments[4]);
    struct sockaddr_in to = place(arguments[2], arguments[3]);
    sigset_t go;
    sigemptyset(&go);
    sigaddset(&go, SIGUSR1);
    sigprocmask(SIG_BLOCK, &go, NULL);
    int socket = bound(place(arguments[0], arguments[1])), got;
    size_t half = length / 2 / chunk * chunk;
    for (size_t at = 0; at < length; at += chunk) {
        if (at == half) {
            fprintf(stderr, "half\n");
            sigwait(&go, &got);
        }
        send_to(socket, &to, input + at, length - at < chunk ? length - at : chunk);
    }
    char answer[8];
    return recv(socket, answer, sizeof answer, 0) == 3 ? 0 : 1;
}

int main(int count, char **arguments) {
    if (count == 5 && !strcmp(arguments[1], "receive"))
        return receive(arguments + 2);
    if (count == 7 && !strcmp(arguments[1], "send"))
        return transmit(arguments + 2);
    return fprintf(stderr, "usage: rds receive|send ...\n"), 2;
}

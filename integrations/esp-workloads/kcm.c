// SPDX-License-Identifier: Apache-2.0 OR MIT
// Messages over KCM, by which the kernel cuts the stream of a TCP connection into messages.
//     kcm receive ADDRESS PORT MESSAGES   writes them to its output, and answers the last
//     kcm send ADDRESS PORT FROM-PORT     sends its input, and waits for the answer
// All messages have 4,096 bytes, which the program says by which the kernel finds their ends. A
// message is sent when a call says by MSG_EOR that it is whole.
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/kcm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KCM_FAMILY 41
#define MESSAGE 4096

static int failed(const char *what) {
    perror(what);
    exit(1);
}

static int load_program(void) {
    struct bpf_insn program[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = MESSAGE},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr how;
    memset(&how, 0, sizeof how);
    how.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
    how.insns = (unsigned long)program;
    how.insn_cnt = 2;
    how.license = (unsigned long)"GPL";
    int loaded = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &how, sizeof how);
    return loaded < 0 ? failed("kcm: program") : loaded;
}

static int over(int tcp) {
    int kcm = socket(KCM_FAMILY, SOCK_SEQPACKET, KCMPROTO_CONNECTED);
    struct kcm_attach attach = {.fd = tcp, .bpf_fd = load_program()};
    if (kcm < 0 || ioctl(kcm, SIOCKCMATTACH, &attach) < 0)
        failed("kcm: attach");
    return kcm;
}

static struct sockaddr_in place(const char *address, const char *port) {
    struct sockaddr_in of = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
    inet_pton(AF_INET, address, &of.sin_addr);
    return of;
}

static int receive(char **arguments) {
    static char message[MESSAGE];
    struct sockaddr_in at = place(arguments[0], arguments[1]);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&at, sizeof at) < 0 || listen(listener, 1) < 0)
        failed("kcm: listen");
    fprintf(stderr, "ready\n");
    int kcm = over(accept(listener, NULL, NULL));
    for (int left = atoi(arguments[2]); left > 0; left--) {
        if (recv(kcm, message, sizeof message, 0) != MESSAGE)
            failed("kcm: receive");
        fwrite(message, 1, MESSAGE, stdout);
    }
    fflush(stdout);
    if (send(kcm, message, MESSAGE, MSG_EOR) != MESSAGE)
        failed("kcm: answer");
    // The answer has to leave before the connection ends. Killed by the test.
    pause();
    return 0;
}

static int transmit(char **arguments) {
    static char message[MESSAGE];
    struct sockaddr_in to = place(arguments[0], arguments[1]), from = place("0.0.0.0", arguments[2]);
    int tcp = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(tcp, (void *)&from, sizeof from) < 0 || connect(tcp, (void *)&to, sizeof to) < 0)
        failed("kcm: connect");
    int kcm = over(tcp);
    while (fread(message, 1, MESSAGE, stdin) == MESSAGE)
        if (send(kcm, message, MESSAGE, MSG_EOR) != MESSAGE)
            failed("kcm: send");
    return recv(kcm, message, MESSAGE, 0) == MESSAGE ? 0 : 1;
}

int main(int count, char **arguments) {
    if (count == 5 && !strcmp(arguments[1], "receive"))
        return receive(arguments + 2);
    if (count == 5 && !strcmp(arguments[1], "send"))
        return transmit(arguments + 2);
    return fprintf(stderr, "usage: kcm receive|send ...\n"), 2;
}

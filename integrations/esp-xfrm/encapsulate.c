// SPDX-License-Identifier: Apache-2.0 OR MIT
// Lets the kernel take ESP in UDP (RFC 3948) at a port: what an IKE daemon does, and nothing else.
//     encapsulate 4|6 PORT
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define UDP_ENCAP 100
#define UDP_ENCAP_ESPINUDP 2

int main(int count, char **arguments) {
    if (count != 3)
        return fprintf(stderr, "usage: encapsulate 4|6 PORT\n"), 1;
    int is_v6 = arguments[1][0] == '6', kind = UDP_ENCAP_ESPINUDP;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((unsigned short)atoi(arguments[2]))};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = six.sin6_port};
    int opened = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
    int bound = is_v6 ? bind(opened, (void *)&six, sizeof six) : bind(opened, (void *)&four, sizeof four);
    if (bound < 0 || setsockopt(opened, IPPROTO_UDP, UDP_ENCAP, &kind, sizeof kind) < 0)
        return perror("encapsulate"), 1;
    printf("ready\n");
    fflush(stdout);
    pause();
    return 0;
}

// SPDX-License-Identifier: Apache-2.0 OR MIT

// Datagrams are sent unfragmented, and ICMP does not change their size (SPEC §9.8, §15.1).
package main

import (
	"net"
	"syscall"
)

func setDF(conn *net.UDPConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	const probe = 3 // IP_PMTUDISC_PROBE
	raw.Control(func(fd uintptr) {
		syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_MTU_DISCOVER, probe)
		syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IPV6, syscall.IPV6_MTU_DISCOVER, probe)
	})
}

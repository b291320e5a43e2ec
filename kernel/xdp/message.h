/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Packets of SMT behind Ethernet and IP, as crates/smt-switch reads them. Offsets are those of
 * vectors/smt_wire.h, which is made of the core's own. */
#ifndef SMT_XDP_MESSAGE_H
#define SMT_XDP_MESSAGE_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../../vectors/smt_wire.h"

#define SMT_UDP_PORT 17379
#define SMT_PROTOCOL 253
#define PROTOCOL_UDP 17
/* UDP's header, and SMT's own in its place. */
#define TRANSPORT_BYTES 8
#define IPV4_BYTES 20
#define IPV6_BYTES 40
/* The longest header of IPv4. */
#define IPV4_BYTES_MAX 60

struct name {
	__u8 source[16];
	__u8 destination[16];
	__u64 session;
	__u64 id;
};

/* Where the parts of a packet are, from the first byte of its frame. */
struct packet {
	__u8 *begin;
	__u8 *end;
	__u8 version; /* of IP */
	__u8 is_udp;
	__u8 is_data;  /* the datagram begins with DATA, which is whole */
	__u8 is_alone; /* and has nothing behind it */
	__u8 is_retransmission;
	__u8 class; /* DSCP and ECN */
	__u32 transport_at;
	__u32 datagram_bytes;
	struct name name; /* the two ends; session and id if it is DATA */
};

static __always_inline __u16 half_at(const __u8 *at)
{
	return (__u16)at[0] << 8 | at[1];
}

static __always_inline __u64 long_at(const __u8 *at)
{
	__u64 number = 0;

#pragma unroll
	for (int byte = 0; byte < 8; byte++)
		number = number << 8 | at[byte];
	return number;
}

/* Reads IP's header. Returns the protocol behind it, or -1; total has IP's bytes by its own field. */
static __always_inline int read_ip(struct packet *packet, __u32 *total)
{
	__u8 *ip = packet->begin + ETH_HLEN;

	if (ip + IPV4_BYTES > packet->end)
		return -1;
	packet->version = ip[0] >> 4;
	if (packet->version == 4 && half_at(ip - 2) == ETH_P_IP) {
		__u32 header = (ip[0] & 0xF) * 4;

		if (header < IPV4_BYTES || half_at(ip + 6) & 0x3FFF)
			return -1;
		packet->transport_at = ETH_HLEN + header;
		packet->class = ip[1];
		*total = half_at(ip + 2);
		__builtin_memcpy(packet->name.source + 12, ip + 12, 4);
		__builtin_memcpy(packet->name.destination + 12, ip + 16, 4);
		return ip[9];
	}
	if (packet->version != 6 || half_at(ip - 2) != ETH_P_IPV6 || ip + IPV6_BYTES > packet->end)
		return -1;
	packet->transport_at = ETH_HLEN + IPV6_BYTES;
	packet->class = ip[0] << 4 | ip[1] >> 4;
	*total = IPV6_BYTES + half_at(ip + 4);
	__builtin_memcpy(packet->name.source, ip + 8, 16);
	__builtin_memcpy(packet->name.destination, ip + 24, 16);
	return ip[6];
}

/* Reads the DATA header that the datagram begins with, if it does. */
static __always_inline void read_data(struct packet *packet, const __u8 *data)
{
	__u32 length;

	if (packet->datagram_bytes <= SMT_DATA_LEN || data + SMT_DATA_LEN > packet->end)
		return;
	if (data[SMT_PREFIX_VERSION_OFFSET] != 1 || data[SMT_PREFIX_TYPE_OFFSET] != SMT_TYPE_DATA ||
	    data[SMT_PREFIX_HEADER_WORDS_OFFSET] != SMT_HEADER_WORDS_DATA)
		return;
	length = half_at(data + SMT_PREFIX_LENGTH_OFFSET);
	if (length && (length <= SMT_DATA_LEN || length > packet->datagram_bytes))
		return;
	packet->is_data = 1;
	packet->is_alone = !length || length == packet->datagram_bytes;
	packet->is_retransmission = data[SMT_PREFIX_FLAGS_OFFSET] & 1;
	packet->name.session = long_at(data + SMT_DATA_SESSION_OFFSET);
	packet->name.id = long_at(data + SMT_DATA_ID_OFFSET);
}

/* Whether a frame is a whole packet of SMT. One of another protocol, a fragment, and what is
 * malformed or cut short are none. */
static __always_inline int read_packet(struct xdp_md *context, struct packet *packet)
{
	__u32 total = 0;
	__u8 *transport;
	int protocol;

	__builtin_memset(packet, 0, sizeof(*packet));
	packet->begin = (__u8 *)(long)context->data;
	packet->end = (__u8 *)(long)context->data_end;
	protocol = read_ip(packet, &total);
	if (protocol != PROTOCOL_UDP && protocol != SMT_PROTOCOL)
		return 0;
	if (packet->transport_at > ETH_HLEN + IPV4_BYTES_MAX)
		return 0;
	transport = packet->begin + packet->transport_at;
	if (transport + TRANSPORT_BYTES > packet->end)
		return 0;
	if (total + ETH_HLEN < packet->transport_at + TRANSPORT_BYTES ||
	    total + ETH_HLEN > (__u32)(packet->end - packet->begin))
		return 0;
	packet->datagram_bytes = total + ETH_HLEN - packet->transport_at - TRANSPORT_BYTES;
	if (protocol == PROTOCOL_UDP) {
		if (half_at(transport) != SMT_UDP_PORT && half_at(transport + 2) != SMT_UDP_PORT)
			return 0;
		if (half_at(transport + 4) != packet->datagram_bytes + TRANSPORT_BYTES)
			return 0;
		packet->is_udp = 1;
	}
	read_data(packet, transport + TRANSPORT_BYTES);
	return 1;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Functions of a switch that work by message, as XDP programs. They act as
 * crates/smt-switch does, and vectors/in_network.json holds both to the same (integrations/xdp/test).
 *
 *   smt_balance   sends all packets of a message out of one of several interfaces
 *   smt_count     counts packets and bytes by message
 *   smt_trim      cuts DATA packets to their headers while a queue would be long
 *   smt_mark      marks packets "congestion experienced" while a queue would be long
 *
 * XDP sees no queue. The queue of the last two is computed: it drains at the rate of the
 * configuration, and each packet adds its bytes (a phantom queue, as HULL has it).
 *
 * Packets that are none of SMT's pass as they are. */
#include "message.h"

#define MESSAGES_MAX 65536
#define PATHS_MAX 16
#define ECN 3
#define TRIMMED_CLASS 0xE0

/* The configuration, which the host writes. */
struct config {
	__u64 seed;		/* of the balancer */
	__u64 rate;		/* of the phantom queue, bytes a second */
	__u64 queue_limit;	/* bytes; one that finds as many is trimmed, or marked */
	__u32 paths;		/* of the balancer */
	__u32 is_counting_only; /* the balancer says its path by its return code, for tests */
};

struct queue {
	struct bpf_spin_lock lock;
	__u64 bytes;
	__u64 drained_at; /* ns */
};

struct counts {
	__u64 packets;
	__u64 bytes;
	__u64 retransmissions;
	__u64 marked;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct config);
} smt_config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct queue);
} smt_queue SEC(".maps");

/* Interfaces by path. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, PATHS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} smt_paths SEC(".maps");

/* The least recently used gives up its place. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MESSAGES_MAX);
	__type(key, struct name);
	__type(value, struct counts);
} smt_messages SEC(".maps");

/* 0: packets of SMT without a message; 1: all others; 2: trimmed; 3: marked; 4: by a path. */
enum { SMT_OTHER, OTHER, TRIMMED, MARKED, SENT, SUMS };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SUMS);
	__type(key, __u32);
	__type(value, struct counts);
} smt_sums SEC(".maps");

static __always_inline struct config *config_of(void)
{
	__u32 first = 0;

	return bpf_map_lookup_elem(&smt_config, &first);
}

static __always_inline void add(struct counts *counts, const struct packet *packet)
{
	__sync_fetch_and_add(&counts->packets, 1);
	__sync_fetch_and_add(&counts->bytes, packet->end - packet->begin - ETH_HLEN);
	if (packet->is_retransmission)
		__sync_fetch_and_add(&counts->retransmissions, 1);
	if ((packet->class & ECN) == ECN)
		__sync_fetch_and_add(&counts->marked, 1);
}

static __always_inline void add_to_sum(__u32 which, const struct packet *packet)
{
	struct counts *counts = bpf_map_lookup_elem(&smt_sums, &which);

	if (counts)
		add(counts, packet);
}

/* MurmurHash3's finalizer, as in crates/smt-switch/src/balancer.rs. */
static __always_inline __u64 mix(__u64 number)
{
	number ^= number >> 33;
	number *= 0xFF51AFD7ED558CCDULL;
	number ^= number >> 33;
	number *= 0xC4CEB9FE1A85EC53ULL;
	return number ^ number >> 33;
}

static __always_inline __u32 path_of(const struct packet *packet, const struct config *config)
{
	__u64 mixed = config->seed;

	mixed = mix(mixed ^ long_at(packet->name.source));
	mixed = mix(mixed ^ long_at(packet->name.source + 8));
	mixed = mix(mixed ^ long_at(packet->name.destination));
	mixed = mix(mixed ^ long_at(packet->name.destination + 8));
	if (packet->is_data)
		mixed = mix(mix(mixed ^ packet->name.session) ^ packet->name.id);
	return (mixed >> 32) * config->paths >> 32;
}

SEC("xdp")
int smt_balance(struct xdp_md *context)
{
	struct config *config = config_of();
	struct packet packet;
	__u32 path;

	if (!config || !config->paths || !read_packet(context, &packet))
		return XDP_PASS;
	path = path_of(&packet, config);
	if (config->is_counting_only)
		return 100 + path;
	add_to_sum(SENT, &packet);
	return bpf_redirect_map(&smt_paths, path, XDP_PASS);
}

SEC("xdp")
int smt_count(struct xdp_md *context)
{
	struct counts none = {}, *counts;
	struct packet packet;

	if (!read_packet(context, &packet)) {
		add_to_sum(OTHER, &packet);
		return XDP_PASS;
	}
	if (!packet.is_data) {
		add_to_sum(SMT_OTHER, &packet);
		return XDP_PASS;
	}
	counts = bpf_map_lookup_elem(&smt_messages, &packet.name);
	if (!counts) {
		bpf_map_update_elem(&smt_messages, &packet.name, &none, BPF_NOEXIST);
		counts = bpf_map_lookup_elem(&smt_messages, &packet.name);
	}
	if (counts)
		add(counts, &packet);
	return XDP_PASS;
}

/* Whether a packet of so many bytes finds the phantom queue as long as the limit, or longer. One
 * that does adds nothing, as it is trimmed, unless it goes on whole. */
static __always_inline int is_queue_long(const struct config *config, __u64 bytes, int goes_on)
{
	__u64 now = bpf_ktime_get_ns(), drained;
	struct queue *queue;
	__u32 first = 0;
	int is_long;

	queue = bpf_map_lookup_elem(&smt_queue, &first);
	if (!queue)
		return 0;
	bpf_spin_lock(&queue->lock);
	/* Another processor may have been here later, and then nothing is drained. At most a second at
	 * once: the product stays below 2^64 up to 147 Gb/s. */
	drained = 0;
	if (now > queue->drained_at) {
		drained = now - queue->drained_at < 1000000000 ? now - queue->drained_at : 1000000000;
		queue->drained_at = now;
	}
	drained = drained * config->rate / 1000000000;
	queue->bytes = queue->bytes > drained ? queue->bytes - drained : 0;
	is_long = queue->bytes >= config->queue_limit;
	if (!is_long || goes_on)
		queue->bytes += bytes;
	bpf_spin_unlock(&queue->lock);
	return is_long;
}

static __always_inline __u16 folded(__u64 sum)
{
	sum = (sum & 0xFFFF) + (sum >> 16 & 0xFFFF) + (sum >> 32);
	sum = (sum & 0xFFFF) + (sum >> 16);
	return (sum & 0xFFFF) + (sum >> 16);
}

/* The sum of an even number of bytes, known when this is compiled. */
static __always_inline __u64 sum_of(const __u8 *bytes, int count)
{
	__u64 sum = 0;

#pragma unroll
	for (int at = 0; at < count; at += 2)
		sum += half_at(bytes + at);
	return sum;
}

static __always_inline void put_half(__u8 *at, __u16 number)
{
	at[0] = number >> 8;
	at[1] = number;
}

static __always_inline void put_class(__u8 *ip, __u8 version, __u8 class)
{
	if (version == 4) {
		ip[1] = class;
	} else {
		ip[0] = (ip[0] & 0xF0) | class >> 4;
		ip[1] = (ip[1] & 0x0F) | class << 4;
	}
}

/* Changes a word of IPv4's header with its checksum (RFC 1624). */
static __always_inline void change_half(__u8 *ip, __u8 *at, __u16 after)
{
	__u64 sum = (__u16)~half_at(ip + 10);

	sum += (__u16)~half_at(at);
	sum += after;
	put_half(at, after);
	put_half(ip + 10, ~folded(sum));
}

/* Class and length of IP; the packet has so many bytes behind Ethernet now. */
static __always_inline void write_ip(__u8 *ip, __u8 version, __u8 class, __u16 bytes)
{
	if (version == 4) {
		change_half(ip, ip, (__u16)ip[0] << 8 | class);
		change_half(ip, ip + 2, bytes);
	} else {
		put_class(ip, version, class);
		put_half(ip + 4, bytes - IPV6_BYTES);
	}
}

/* Length and checksum of UDP; no checksum stays none (RFC 768). */
static __always_inline void write_udp(__u8 *ip, __u8 *udp, __u8 version)
{
	__u64 sum = PROTOCOL_UDP + TRANSPORT_BYTES + SMT_DATA_LEN;
	__u16 checksum;

	put_half(udp + 4, TRANSPORT_BYTES + SMT_DATA_LEN);
	if (!half_at(udp + 6))
		return;
	put_half(udp + 6, 0);
	sum += version == 4 ? sum_of(ip + 12, 8) : sum_of(ip + 8, 32);
	sum += sum_of(udp, TRANSPORT_BYTES + SMT_DATA_LEN);
	checksum = ~folded(sum);
	put_half(udp + 6, checksum ? checksum : 0xFFFF);
}

SEC("xdp")
int smt_trim(struct xdp_md *context)
{
	struct config *config = config_of();
	__u32 transport_at, bytes;
	struct packet packet;
	__u8 *ip, *transport, *end;
	int may_trim;

	if (!config || !read_packet(context, &packet))
		return XDP_PASS;
	may_trim = packet.is_data && packet.is_alone;
	if (!is_queue_long(config, packet.end - packet.begin, !may_trim) || !may_trim)
		return XDP_PASS;
	transport_at = packet.transport_at;
	bytes = transport_at + TRANSPORT_BYTES + SMT_DATA_LEN;
	add_to_sum(TRIMMED, &packet);
	if (bpf_xdp_adjust_tail(context, (int)bytes - (int)(packet.end - packet.begin)))
		return XDP_PASS;
	ip = (__u8 *)(long)context->data + ETH_HLEN;
	end = (__u8 *)(long)context->data_end;
	if (transport_at > ETH_HLEN + IPV4_BYTES_MAX || ip + IPV6_BYTES > end)
		return XDP_DROP;
	transport = ip - ETH_HLEN + transport_at;
	if (transport + TRANSPORT_BYTES + SMT_DATA_LEN > end)
		return XDP_DROP;
	write_ip(ip, packet.version, TRIMMED_CLASS | (packet.class & ECN), bytes - ETH_HLEN);
	if (packet.is_udp)
		write_udp(ip, transport, packet.version);
	return XDP_PASS;
}

SEC("xdp")
int smt_mark(struct xdp_md *context)
{
	struct config *config = config_of();
	struct packet packet;
	__u8 *ip;

	if (!config || !read_packet(context, &packet))
		return XDP_PASS;
	if (!is_queue_long(config, packet.end - packet.begin, 1))
		return XDP_PASS;
	/* A sender that does not know of ECN gets no mark (RFC 3168 §5). */
	if ((packet.class & ECN) == 0 || (packet.class & ECN) == ECN)
		return XDP_PASS;
	ip = packet.begin + ETH_HLEN;
	if (ip + IPV4_BYTES > packet.end)
		return XDP_PASS;
	if (packet.version == 4)
		change_half(ip, ip, (__u16)ip[0] << 8 | packet.class | ECN);
	else
		put_class(ip, 6, packet.class | ECN);
	add_to_sum(MARKED, &packet);
	return XDP_PASS;
}

char smt_license[] SEC("license") = "Dual MIT/GPL";

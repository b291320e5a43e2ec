// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A probe of the host: the offloads that it offers to a UDP carrier, found out by use on loopback.
//!
//! 1. Open two sockets on 127.0.0.1.
//! 2. Try on them: ever smaller batches, their receipt, a traffic class, ever smaller datagrams.
//! 3. Have the datagrams of two shards sorted.
//! 4. Ask for far too large a buffer and see what is granted.
//!
//! A network card may still refuse what loopback does; the carrier finds that out as it sends.

use crate::UdpOptions;
use crate::limits::UDP_BYTES_MAX_IPV4;
use crate::udp::{
    Blocking, BufferBytes, Family, Incoming, Offloads, OpenError, Outgoing, Preparation,
    UdpCarrier, may_force_buffers, path_mtu, prepare, receive, report_traffic_class, send,
    size_buffers, wait_readable,
};
use smt_carrier::limits::RECEIVE_BUFFER_BYTES;
use smt_carrier::{Arrival, Batch, Carrier, Path, Wait};
use smt_wire::{PacketType, Shard};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

/// The offloads that a host was found to offer.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Probe {
    /// Bytes of the largest datagram that left by loopback.
    pub datagram_bytes_max: usize,
    /// Whether a datagram's priority (DSCP) arrived as it was sent.
    pub dscp: bool,
    /// Whether this process may size buffers past the host's limits (`CAP_NET_ADMIN`).
    pub buffer_force: bool,
    /// Whether IPv6 can be spoken on loopback.
    pub ipv6: bool,
    /// Bytes of the largest packet on loopback; 0 if the system does not tell.
    pub loopback_mtu: usize,
    /// Bytes of the largest receive buffer that was granted, of 64 MiB asked for.
    pub receive_buffer_bytes_max: usize,
    /// Whether a batch that was sent whole arrived whole (GRO).
    pub receive_offload: bool,
    /// Segments in the largest batch that left by one call (GSO); 1 if there is no such offload.
    pub segments_max: usize,
    /// Whether the kernel sorts the datagrams of shards that share an address, and does so rightly.
    pub shard_selector: bool,
    /// Bytes of the largest send buffer that was granted, of 64 MiB asked for.
    pub send_buffer_bytes_max: usize,
}

/// Tries out what this host offers. Takes about a millisecond, and a few seconds at most.
///
/// # Errors
/// If there is no UDP on IPv4 loopback at all.
pub fn probe() -> io::Result<Probe> {
    let bench = Bench::new()?;
    let buffers = bench.largest_buffers()?;
    Ok(Probe {
        datagram_bytes_max: bench.datagram_bytes_max(),
        dscp: bench.keeps_traffic_class(),
        buffer_force: may_force_buffers(&bench.target),
        ipv6: speaks_ipv6().is_ok(),
        loopback_mtu: path_mtu(&bench.source, true).unwrap_or(0),
        receive_buffer_bytes_max: buffers.receive,
        receive_offload: bench.coalesces(),
        segments_max: bench.segments_max(),
        shard_selector: sorts_by_shard().is_some(),
        send_buffer_bytes_max: buffers.send,
    })
}

/// A pair of prepared sockets on loopback; the source is connected to the target.
struct Bench {
    source: Socket,
    target: Socket,
    offloads: Offloads,
}

impl Bench {
    fn new() -> io::Result<Self> {
        let preparation = Preparation {
            family: Family::V4,
            report_local: false,
            segmentation_offload: true,
            receive_offload: true,
        };
        let address = SockAddr::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let target = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        let offloads = prepare(&target, preparation)?;
        target.bind(&address)?;
        let source = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        prepare(&source, preparation)?;
        source.connect(&target.local_addr()?)?;
        Ok(Self { source, target, offloads })
    }

    /// The most segments that one call takes, of the numbers that kernels are known to allow.
    fn segments_max(&self) -> usize {
        if !self.offloads.segmentation {
            return 1;
        }
        let taken = SEGMENT_COUNTS
            .into_iter()
            .find(|count| self.carry(&vec![0; count * SEGMENT_BYTES], None).is_some());
        taken.unwrap_or(1)
    }

    fn coalesces(&self) -> bool {
        const BATCH: [u8; 4 * SEGMENT_BYTES] = [0; 4 * SEGMENT_BYTES];
        self.offloads.receive
            && self.carry(&BATCH, None).is_some_and(|arrival| {
                arrival.length == BATCH.len() && arrival.segment_size == SEGMENT_BYTES
            })
    }

    fn keeps_traffic_class(&self) -> bool {
        if report_traffic_class(&self.target, Family::V4).is_err() {
            return false;
        }
        let arrival = self.carry(&[0], Some(TRAFFIC_CLASS));
        arrival.is_some_and(|arrival| arrival.traffic_class == Some(TRAFFIC_CLASS))
    }

    fn datagram_bytes_max(&self) -> usize {
        let carried = |bytes: usize| {
            let outgoing = Outgoing { segment_size: None, ..outgoing(&ZEROS[..bytes]) };
            send(&self.source, &outgoing).is_ok() && self.take().is_some()
        };
        // Bisect: `low` was carried (or is nothing), `high` was not.
        let (mut low, mut high) = (0, UDP_BYTES_MAX_IPV4 + 1);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            if carried(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    fn largest_buffers(&self) -> io::Result<BufferBytes> {
        let wanted = BufferBytes { receive: BUFFER_BYTES_ASKED, send: BUFFER_BYTES_ASKED };
        size_buffers(&self.target, wanted)
    }

    /// Sends `bytes` as one batch and takes what arrives first of it, leaving nothing behind.
    fn carry(&self, bytes: &[u8], traffic_class: Option<u8>) -> Option<Incoming> {
        let outgoing = Outgoing { traffic_class, ..outgoing(bytes) };
        send(&self.source, &outgoing).ok()?;
        let first = self.take();
        while receive(&self.target, &mut [0], Blocking::No).is_ok() {}
        first
    }

    /// Waits for one batch; loopback delivers within the send call unless the host is busy.
    fn take(&self) -> Option<Incoming> {
        wait_readable([self.target.as_fd()], ARRIVAL_WAIT).ok()?;
        let mut buffer = vec![0; RECEIVE_BUFFER_BYTES];
        receive(&self.target, &mut buffer, Blocking::No).ok()
    }
}

/// `bytes` as a batch of small segments, to wherever the socket is connected.
fn outgoing(bytes: &[u8]) -> Outgoing<'_> {
    Outgoing {
        to: None,
        ipv4: true,
        source: None,
        traffic_class: None,
        segment_size: (bytes.len() > SEGMENT_BYTES).then_some(SEGMENT_BYTES as u16),
        bytes,
    }
}

/// Sends a datagram to each of two shards, which must get it without the other's help.
fn sorts_by_shard() -> Option<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let shards = UdpOptions::new().bind_shards(address, 2).ok()?;
    let source = UdpOptions::new().connect(shards[0].local_address()).ok()?;
    let path = Path::to(shards[0].local_address());
    for (serial, shard) in (0..).zip(&shards) {
        let mut datagram = [0; SHARD_PROBE_BYTES];
        datagram[1] = PacketType::Data as u8;
        datagram[Shard::DESTINATION_OFFSET + 7] = serial;
        let batch = Batch::datagrams(path, datagram.len(), &datagram);
        source.send(&batch).ok()?;
        let mut bytes = 0;
        let mut sink = |arrival: Arrival<'_>| bytes = arrival.bytes.len();
        shard.receive(&mut sink, Wait::AtMost(ARRIVAL_WAIT)).ok()?;
        (bytes == SHARD_PROBE_BYTES).then_some(())?;
    }
    let is_sorted = |shard: &UdpCarrier| shard.statistics().datagrams_strayed == 0;
    (shards[0].has_shard_selector() && shards.iter().all(is_sorted)).then_some(())
}

fn speaks_ipv6() -> Result<UdpCarrier, OpenError> {
    UdpOptions::new().bind(SocketAddr::from((Ipv6Addr::LOCALHOST, 0)))
}

/// Bytes of a segment in a batch: small, so that even 128 of them fit a datagram.
const SEGMENT_BYTES: usize = 100;
/// Segment counts that kernels are known to allow (128, then 64), and smaller ones in case a kernel
/// allows less.
const SEGMENT_COUNTS: [usize; 7] = [128, 64, 32, 16, 8, 4, 2];
/// Bytes of a datagram that names a shard.
const SHARD_PROBE_BYTES: usize = 40;
/// DSCP 46 (expedited forwarding), no ECN: in use everywhere, so unlikely to be rewritten.
const TRAFFIC_CLASS: u8 = 46 << 2;
/// More than any host's default limit, so that what is granted is the limit.
const BUFFER_BYTES_ASKED: usize = 64 << 20;
/// Far above what loopback takes on a busy host.
const ARRIVAL_WAIT: Duration = Duration::from_millis(50);
/// The contents of a datagram; only the length matters.
static ZEROS: [u8; UDP_BYTES_MAX_IPV4 + 1] = [0; UDP_BYTES_MAX_IPV4 + 1];

#[cfg(test)]
mod tests {
    mod probe {
        use super::super::{UDP_BYTES_MAX_IPV4, probe};

        /// Header bytes before the UDP payload over IPv4.
        const HEADER_BYTES_IPV4: usize = 20 + 8;

        #[test]
        fn findings_agree_with_each_other() {
            let found = probe().unwrap();
            assert!(found.datagram_bytes_max >= 1_232, "{found:?}");
            if found.loopback_mtu > 0 {
                let fits = (found.loopback_mtu - HEADER_BYTES_IPV4).min(UDP_BYTES_MAX_IPV4);
                assert_eq!(found.datagram_bytes_max, fits);
            }
            assert!(found.receive_buffer_bytes_max >= 65_536, "{found:?}");
            if found.buffer_force {
                assert_eq!(found.receive_buffer_bytes_max, 64 << 20);
            }
        }

        #[cfg(target_os = "linux")]
        #[test]
        fn offloads_of_linux_are_found() {
            let found = probe().unwrap();
            assert!(found.segments_max >= 64 && found.receive_offload, "{found:?}");
            assert!(found.dscp && found.shard_selector, "{found:?}");
        }
    }
}

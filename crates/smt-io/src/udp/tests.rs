// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Real sockets on loopback; ports are the system's choice.

mod bind;
#[cfg(target_os = "linux")]
mod forbidden;
#[cfg(target_os = "linux")]
mod portable_imp;
mod receive;
#[cfg(target_os = "linux")]
mod reports;
mod send;

use super::*;
use crate::testing::Described as _;
use smt_carrier::Transmit;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Far above what loopback takes on a busy host.
const SOON: Wait = Wait::AtMost(Duration::from_secs(10));
/// Long enough that one wait of the socket's own kind is made, short enough to sit out.
const SHORT: Wait = Wait::AtMost(Duration::from_millis(4));

fn local_v4() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// The loopback addresses of the IP versions that this host speaks.
fn loopbacks() -> Vec<SocketAddr> {
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let mut addresses = vec![local_v4()];
    addresses.extend(UdpCarrier::bind(v6).is_ok().then_some(v6));
    addresses
}

fn transmit(path: Path, segment_size: usize) -> Transmit {
    Transmit::new(path, segment_size)
}

/// `length` bytes of which no two segments are alike.
fn contents(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index / 7 % 251) as u8).collect()
}

/// Receives until `length` bytes are there; gives the datagrams and the number of batches.
fn collect(carrier: &UdpCarrier, length: usize) -> (Vec<Vec<u8>>, usize) {
    let mut buffer = vec![0; smt_carrier::limits::RECEIVE_BUFFER_BYTES];
    let (mut datagrams, mut batches, mut total) = (Vec::new(), 0, 0);
    while total < length {
        let received = carrier.receive_into(&mut buffer, SOON).unwrap();
        let received = received.expect("everything sent on loopback arrives");
        total += received.length;
        batches += 1;
        datagrams.extend(received.arrival(&buffer).segments().map(|bytes| bytes.to_vec()));
    }
    (datagrams, batches)
}

fn assert_datagrams(datagrams: &[Vec<u8>], bytes: &[u8], segment_size: usize) {
    let expected: Vec<&[u8]> = bytes.chunks(segment_size).collect();
    assert_eq!(datagrams, expected);
}

/// A client that is connected to a server's address, and the server.
fn connected(address: SocketAddr, options: &UdpOptions) -> (UdpCarrier, UdpCarrier) {
    let server = options.bind(address).unwrap();
    let client = options.connect(server.local_address()).unwrap();
    (client, server)
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How large a datagram may be.

use super::*;

#[test]
fn connected_and_unconnected_agree() {
    for address in loopbacks() {
        let (client, server) = connected(address, &UdpOptions::new());
        let remote = server.local_address();
        let size = client.datagram_size_max(remote);
        assert_eq!(server.datagram_size_max(remote), size);
        assert!(size >= DATAGRAM_BYTES_FLOOR);
    }
}

#[test]
fn no_way_to_the_peer_is_the_floor() {
    let carrier = UdpCarrier::bind(local_v4()).unwrap();
    // The broadcast address: a socket that has not asked for it may not connect there.
    let nowhere = SocketAddr::from((Ipv4Addr::BROADCAST, 9));
    assert_eq!(carrier.datagram_size_max(nowhere), DATAGRAM_BYTES_FLOOR);
}

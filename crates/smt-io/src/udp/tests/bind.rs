// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opening on an address.

use super::*;

#[test]
fn port_zero_becomes_a_real_one() {
    for address in loopbacks() {
        let carrier = UdpCarrier::bind(address).unwrap();
        assert_eq!(carrier.local_address().ip(), address.ip());
        assert_ne!(carrier.local_address().port(), 0);
    }
}

#[test]
fn taken_address_is_named_in_the_error() {
    let address = UdpCarrier::bind(local_v4()).unwrap();
    let error = UdpCarrier::bind(address.local_address()).unwrap_err();
    let address = address.local_address();
    let expected = format!("environment: cannot bind a UDP socket to {address}: Address already");
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[test]
fn wildcard_of_ipv6_takes_ipv4_and_shows_it_as_such() {
    let [_, _v6] = loopbacks()[..] else { return };
    let server = UdpCarrier::bind((Ipv6Addr::UNSPECIFIED, 0).into()).unwrap();
    let port = server.local_address().port();
    let client = UdpCarrier::connect((Ipv4Addr::LOCALHOST, port).into()).unwrap();
    let way = Path::to((Ipv4Addr::LOCALHOST, port).into());
    client.send_bytes(&transmit(way, 4), b"ping").unwrap();
    let received = server.receive_into(&mut [0; 64], SOON).unwrap().unwrap();
    assert_eq!(received.path.remote, client.local_address());
    assert_eq!(received.path.local, Some(Ipv4Addr::LOCALHOST.into()));
    server.send_bytes(&transmit(received.path, 4), b"pong").unwrap();
    assert!(client.receive_into(&mut [0; 64], SOON).unwrap().is_some());
}

#[test]
fn mapped_address_opens_an_ipv4_socket() {
    let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
    let carrier = UdpCarrier::bind((mapped, 0).into()).unwrap();
    assert!(carrier.local_address().is_ipv4());
}

#[test]
fn buffers_are_what_was_asked_for_or_the_hosts_limit() {
    let modest = UdpOptions::new()
        .receive_buffer_bytes(65_536)
        .send_buffer_bytes(32_768)
        .bind(local_v4())
        .unwrap();
    assert_eq!(modest.receive_buffer_bytes(), 65_536);
    assert_eq!(modest.send_buffer_bytes(), 32_768);
    let limit = crate::probe().unwrap().receive_buffer_bytes_max;
    let greedy = UdpOptions::new().receive_buffer_bytes(64 << 20);
    let greedy = greedy.bind(local_v4()).unwrap();
    assert_eq!(greedy.receive_buffer_bytes(), limit);
}

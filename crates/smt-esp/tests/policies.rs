// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Policies and the choice among associations: RFC 4301 §4.1, §5.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod packets;

use packets::{NOW, SPI, V4, V6, open, parameters, plain_database, seal, tcp, udp};
use smt_esp::{
    Action, Addresses, Arrival, Database, InboundAssociation, Mode, OpenError, OutboundAssociation,
    Parameters, ParametersError, Policy, SealError, Selectors, Suite,
};

fn with_spi(spi: u32) -> Parameters {
    let mut parameters = parameters(Suite::Aes128Gcm16, Mode::Transport);
    parameters.spi = spi;
    parameters
}

fn of_port(port: u16) -> Selectors {
    Selectors { protocol: Some(6), remote_ports: Some(port..=port), ..Selectors::default() }
}

#[test]
fn a_packet_leaves_by_the_first_policy_that_matches() {
    let mut database = Database::new();
    let mut add = |spi: u32, selectors: Selectors| {
        let association = OutboundAssociation::new(with_spi(spi), NOW).unwrap();
        let action = Action::Protect(database.add_outbound(association));
        database.add_policy(Policy { selectors, action });
    };
    add(1000, of_port(80));
    let rest_of_v4 = Selectors {
        remote: Addresses::prefix(V4.1.parse().unwrap(), 8).unwrap(),
        ..Selectors::default()
    };
    add(2000, rest_of_v4);
    assert_eq!(seal(&mut database, &tcp(V4, 1, 0x10, b"x")).unwrap().0.spi, 1000);
    assert_eq!(seal(&mut database, &udp(V4, b"x")).unwrap().0.spi, 2000);
    assert_eq!(seal(&mut database, &udp(V6, b"x")), Err(SealError::Policy));
    assert_eq!(database.statistics().out_policy, 1);
}

#[test]
fn a_packet_without_esp_enters_only_where_a_policy_bypasses_it() {
    let mut database = plain_database(Suite::Aes128Gcm16, Mode::Transport);
    let packet = tcp(V4, 1, 0x10, b"in the clear");
    assert_eq!(open(&mut database, &packet), Err(OpenError::Policy));
    let bypass = Policy {
        selectors: Selectors { local_ports: Some(80..=80), ..Selectors::default() },
        action: Action::Bypass,
    };
    database.policies_mut().insert(0, bypass);
    assert_eq!(open(&mut database, &packet), Ok((Arrival::Bypass, packet)));
    let statistics = database.statistics();
    assert_eq!((statistics.in_policy, statistics.bypassed), (1, 1));
}

#[test]
fn an_association_that_is_gone_lets_nothing_out() {
    let mut database = Database::new();
    let association = OutboundAssociation::new(with_spi(SPI), NOW).unwrap();
    let id = database.add_outbound(association);
    database.add_policy(Policy { selectors: Selectors::default(), action: Action::Protect(id) });
    assert!(database.remove_outbound(id).is_some());
    assert_eq!(seal(&mut database, &udp(V4, b"x")), Err(SealError::NoAssociation));
    assert_eq!(database.statistics().out_no_association, 1);
}

#[test]
fn an_association_takes_only_its_own_packets_out() {
    let mut database = Database::new();
    let mut parameters = with_spi(SPI);
    parameters.selectors = of_port(443);
    let association = OutboundAssociation::new(parameters, NOW).unwrap();
    let id = database.add_outbound(association);
    database.add_policy(Policy { selectors: Selectors::default(), action: Action::Protect(id) });
    let refused = seal(&mut database, &tcp(V4, 1, 0x10, b"to port 80"));
    assert_eq!(refused, Err(SealError::Selectors));
}

#[test]
fn an_unknown_spi_is_refused_and_counted() {
    let mut database = plain_database(Suite::Aes128Gcm16, Mode::Transport);
    let (_, bytes) = seal(&mut database, &udp(V4, b"x")).unwrap();
    database.remove_inbound(SPI);
    let refused = Err(OpenError::NoAssociation { spi: SPI });
    assert_eq!(open(&mut database, &bytes), refused);
    assert_eq!(database.statistics().in_no_association, 1);
}

#[test]
fn addresses_choose_among_associations_of_one_spi() {
    let mut database = plain_database(Suite::Aes128Gcm16, Mode::Transport);
    let mut other = parameters(Suite::Aes256Gcm16, Mode::Transport);
    other.local = Some(V4.1.parse().unwrap());
    let other = InboundAssociation::new(other, NOW).unwrap();
    database.add_inbound(other).unwrap();
    let again = parameters(Suite::Aes256Gcm16, Mode::Transport);
    let again = InboundAssociation::new(again, NOW).unwrap();
    assert_eq!(database.add_inbound(again), Err(ParametersError::InUse(SPI)));

    let mut peer = plain_database(Suite::Aes256Gcm16, Mode::Transport);
    let (_, bytes) = seal(&mut peer, &udp(V4, b"by address")).unwrap();
    assert!(open(&mut database, &bytes).is_ok());
    let (_, bytes) = seal(&mut peer, &udp(V6, b"by the SPI alone")).unwrap();
    assert_eq!(open(&mut database, &bytes), Err(OpenError::Integrity));
}

#[test]
fn ike_and_keepalives_in_udp_are_no_esp() {
    let mut database = plain_database(Suite::Aes128Gcm16, Mode::Transport);
    let to_esp_port = |payload: &[u8]| {
        let mut packet = udp(V4, payload);
        packet[22..24].copy_from_slice(&4500u16.to_be_bytes());
        packet
    };
    let keepalive = to_esp_port(&smt_esp::KEEPALIVE);
    assert_eq!(open(&mut database, &keepalive).unwrap().0, Arrival::Keepalive);
    let ike = to_esp_port(b"\0\0\0\0message");
    assert_eq!(open(&mut database, &ike), Ok((Arrival::Ike, ike.clone())));
    let short = to_esp_port(b"short");
    assert_eq!(open(&mut database, &short), Err(OpenError::Malformed));
    database.set_udp_port(None);
    assert_eq!(open(&mut database, &keepalive), Err(OpenError::Policy));
}

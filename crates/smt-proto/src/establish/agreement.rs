// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parameters of a session: what this side offers or answers, and what both agreed (SPEC §6.3).

use alloc::vec;
use alloc::vec::Vec;
use smt_carrier::ReceivingFlow;
use smt_record::{IdLayout, IndexBits, Padding, Side};
use smt_wire::{Geometry, InnerHeader, Params, ParamsError, SessionIndex, Suites};

use crate::config::Config;
use crate::key_exchange::Attempt;
use crate::recovery::jitter::Jitter;

/// The client's parameters as bytes. `psp_versions` are those that its carrier seals packets by;
/// none where the session's records are to be sealed.
pub(crate) fn client_params(
    config: &Config,
    attempt: &Attempt,
    index: SessionIndex,
    psp_versions: &[u8],
) -> Vec<u8> {
    let suites = suite_codes(attempt);
    let mut params = own_params(config, attempt, index, &suites);
    params.psp_versions = (!psp_versions.is_empty()).then_some(psp_versions);
    emit(&params)
}

/// Whether a server of this configuration can answer a client's parameters at all.
///
/// # Errors
/// The parameters are malformed, or do not offer the server's version.
pub(crate) fn check_offer(config: &Config, client_bytes: &[u8]) -> Result<(), Disagreement> {
    let client = Params::parse(client_bytes)?;
    match client.versions.contains(&config.version) {
        true => Ok(()),
        false => Err(Disagreement::Version),
    }
}

/// Whether the client's carrier seals packets, by these parameters of its.
pub(crate) fn offers_sealed_packets(client_bytes: &[u8]) -> bool {
    Params::parse(client_bytes).is_ok_and(|client| client.psp_versions.is_some())
}

/// The server's parameters, which answer the client's, as bytes: sizes and stripes are the lesser
/// of both. `psp_versions` are those that its carrier seals packets by, as the client's are.
pub(crate) fn server_params(
    config: &Config,
    attempt: &Attempt,
    index: SessionIndex,
    client_bytes: &[u8],
    psp_versions: &[u8],
) -> Result<Vec<u8>, Disagreement> {
    let client = Params::parse(client_bytes)?;
    if client.key_exchange != attempt.kind {
        return Err(Disagreement::KeyExchange);
    }
    let suites = suite_codes(attempt);
    let mut params = own_params(config, attempt, index, &suites);
    params.record_size = params.record_size.min(client.record_size);
    params.first_record_size =
        params.first_record_size.min(client.first_record_size).min(params.record_size);
    params.stripes = params.stripes.min(client.stripes);
    let offered = client.psp_versions.unwrap_or_default();
    let chosen = psp_versions.iter().find(|own| offered.contains(own));
    params.psp_versions = chosen.map(core::slice::from_ref);
    Ok(emit(&params))
}

/// Whether packets may be sealed instead of records after a key exchange of this kind. After one by
/// ticket they may not: records of early data leave before the other side can tell an association.
pub(crate) fn may_seal_packets(kind: smt_wire::KeyExchange) -> bool {
    matches!(kind, smt_wire::KeyExchange::Tls13 | smt_wire::KeyExchange::Registered)
}

/// The agreement that follows from both sides' parameters.
pub(crate) fn agree(
    config: &Config,
    side: Side,
    client_bytes: &[u8],
    server_bytes: &[u8],
) -> Result<Agreement, Disagreement> {
    let client = Params::parse(client_bytes)?;
    let server = Params::parse(server_bytes)?;
    let is_within = server.record_size <= client.record_size
        && server.first_record_size <= client.first_record_size
        && server.stripes <= client.stripes;
    if !is_within {
        return Err(Disagreement::Exceeds);
    }
    if server.key_exchange != client.key_exchange {
        return Err(Disagreement::KeyExchange);
    }
    if server.versions != [config.version] && side == Side::Client {
        return Err(Disagreement::Version);
    }
    let psp_version = match server.psp_versions {
        None => None,
        Some([version]) if client.psp_versions.unwrap_or_default().contains(version) => {
            Some(*version)
        }
        Some(_) => return Err(Disagreement::Exceeds),
    };
    let (own, peer) = if side == Side::Client { (&client, &server) } else { (&server, &client) };
    let geometry =
        Geometry::new(server.first_record_size, server.record_size).ok_or(Disagreement::Exceeds)?;
    let send_bits = IndexBits::new(own.index_bits).ok_or(Disagreement::Exceeds)?;
    let receive_bits = IndexBits::new(peer.index_bits).ok_or(Disagreement::Exceeds)?;
    let by_index = geometry.padded_max(send_bits.bits());
    Ok(Agreement {
        side,
        geometry,
        send_bits,
        receive_bits,
        layout: IdLayout::new(send_bits, receive_bits, server.stripes)
            .ok_or(Disagreement::Exceeds)?,
        own_window: own.window,
        peer_window: peer.window,
        message_max: peer.message_limit.min(by_index.saturating_sub(InnerHeader::LEN as u32)),
        received_max: geometry.padded_max(receive_bits.bits()),
        unscheduled: peer.unscheduled,
        datagram_limit: peer.datagram_limit.min(config.datagram_limit),
        takes_bundles: own.takes_bundles,
        sends_bundles: own.takes_bundles && peer.takes_bundles,
        peer_part_window: match own.part_window {
            Some(_) => peer.part_window.unwrap_or(0),
            None => 0,
        },
        psp_version,
    })
}

/// The parameters that the handshake agreed (SPEC §6.3).
pub(crate) struct Agreement {
    pub(crate) side: Side,
    pub(crate) geometry: Geometry,
    pub(crate) send_bits: IndexBits,
    pub(crate) receive_bits: IndexBits,
    pub(crate) layout: IdLayout,
    pub(crate) own_window: u32,
    pub(crate) peer_window: u32,
    /// Application bytes of the largest message that the peer accepts and record indices can
    /// number.
    pub(crate) message_max: u32,
    /// Inner bytes of the largest message whose records the peer's indices can number.
    pub(crate) received_max: u32,
    /// Bytes of a message that the peer accepts without a grant.
    pub(crate) unscheduled: u32,
    pub(crate) datagram_limit: u16,
    /// Whether the peer was told that it may send bundles.
    pub(crate) takes_bundles: bool,
    /// Whether both sides take bundles.
    pub(crate) sends_bundles: bool,
    /// Bytes of parts of a call that the peer accepts at first; 0: one of the sides takes none.
    pub(crate) peer_part_window: u32,
    /// The version of PSP by which carriers seal the packets of the session; `None`: its records
    /// are sealed.
    pub(crate) psp_version: Option<u8>,
}

impl Agreement {
    /// The packets of the session for a carrier that opens records.
    pub(crate) fn receiving_flow(&self, own: SessionIndex) -> ReceivingFlow {
        ReceivingFlow {
            session: own.0,
            index_bits: self.receive_bits.bits(),
            first_record: self.geometry.first,
            record: self.geometry.rest,
        }
    }
}

impl Agreement {
    /// The padded length of a message of this many application bytes.
    pub(crate) fn padded(&self, padding: &Padding, length: u32) -> u32 {
        let header = InnerHeader::LEN as u32;
        padding.padded(header + length, header + self.message_max)
    }
}

/// The index of a session at this side.
#[derive(Clone, Copy)]
pub(crate) struct OwnIndex {
    pub(crate) index: SessionIndex,
    /// The token that a RESET of the index carries (SPEC §12.1).
    pub(crate) reset_token: [u8; 16],
}

/// The two indices of a session.
#[derive(Clone, Copy)]
pub(crate) struct Indices {
    pub(crate) own: SessionIndex,
    pub(crate) remote: SessionIndex,
    /// The reset token of `own` (SPEC §12.1).
    pub(crate) own_reset_token: [u8; 16],
}

impl Indices {
    /// One of the two hosts gives each of its sessions another index, so those that share its link
    /// differ.
    pub(crate) fn jitter(&self) -> Jitter {
        let [own, remote] = [self.own, self.remote].map(|index| index.0.to_be_bytes());
        Jitter::of(own.iter().chain(&remote))
    }
}

/// Why parameters do not fit.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Disagreement {
    #[error("the parameters are not well formed: {0}")]
    Malformed(#[from] ParamsError),
    #[error("the key exchange does not fit the endpoint's version: keys and plaintext do not mix")]
    Plaintext,
    #[error("no version in common")]
    Version,
    #[error("the sides use different kinds of key exchange (TLS or registered keys)")]
    KeyExchange,
    #[error("the server's answer exceeds what was offered")]
    Exceeds,
}

fn own_params<'a>(
    config: &'a Config,
    attempt: &'a Attempt,
    index: SessionIndex,
    suites: &'a [u16],
) -> Params<'a> {
    let key = attempt.key.as_ref();
    Params {
        versions: core::slice::from_ref(&config.version),
        key_exchange: attempt.kind,
        index,
        suites: Suites::from(suites),
        index_bits: config.index_bits,
        record_size: config.record_size,
        first_record_size: config.first_record_size.min(config.record_size),
        window: config.window,
        message_limit: config.message_limit,
        unscheduled: config.unscheduled,
        datagram_limit: config.datagram_limit,
        stripes: config.stripes_log2,
        key_name: key.map(|key| key.name.as_slice()),
        random: key.map(|key| &key.random),
        takes_bundles: config.bundles,
        part_window: (config.part_window > 0).then_some(config.part_window),
        psp_versions: None,
    }
}

fn suite_codes(attempt: &Attempt) -> Vec<u16> {
    if attempt.suites.is_empty() {
        // The plaintext measurement version (SPEC §14).
        return vec![0];
    }
    attempt.suites.iter().map(|suite| suite.code()).collect()
}

fn emit(params: &Params<'_>) -> Vec<u8> {
    let mut bytes = vec![0; Params::LEN_MAX];
    let length = params.emit(&mut bytes);
    bytes.truncate(length);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TransportConfig;
    use crate::key_exchange::{Failed, Input, KeyExchange, NamedKey, Step};
    use smt_record::Suite;
    use std::prelude::v1::*;

    /// Takes no step.
    struct Unused;

    impl KeyExchange for Unused {
        fn step(&mut self, _: Input<'_>) -> Result<Step, Failed> {
            unreachable!("parameters alone are asked for")
        }
    }

    fn attempt(kind: smt_wire::KeyExchange) -> Attempt {
        let key = NamedKey { name: b"key".to_vec(), random: [7; 32] };
        Attempt {
            kind,
            suites: vec![Suite::Aes128Gcm],
            key: Some(key),
            early_max: 0,
            exchange: Box::new(Unused),
        }
    }

    fn tls() -> Attempt {
        attempt(smt_wire::KeyExchange::Tls13)
    }

    fn registered() -> Attempt {
        attempt(smt_wire::KeyExchange::Registered)
    }

    /// Parameters with these N, N0 and k, and defaults.
    fn with(record_size: u16, first_record_size: u16, stripes_log2: u8) -> Config {
        Config::from(TransportConfig {
            record_size,
            first_record_size,
            stripes_log2,
            ..TransportConfig::default()
        })
    }

    fn speaking(version: u8) -> Config {
        Config { version, ..Config::default() }
    }

    /// A side's own parameters: an offer, or an answer that does not look at the offer.
    fn own(config: &Config) -> Vec<u8> {
        client_params(config, &tls(), SessionIndex(7), &[])
    }

    mod server_params {
        use super::*;

        fn answer(
            config: &Config,
            attempt: &Attempt,
            client: &[u8],
        ) -> Result<Vec<u8>, Disagreement> {
            check_offer(config, client)?;
            server_params(config, attempt, SessionIndex(8), client, &[])
        }

        // SMT [6.3-14], [6.3-18]
        #[test]
        fn sizes_and_stripes_are_the_lesser_of_both() {
            let (few, many) = (with(5_000, 500, 1), with(6_000, 600, 2));
            for (server, client) in [(&few, &many), (&many, &few)] {
                let bytes = answer(server, &tls(), &own(client)).unwrap();
                let chosen = Params::parse(&bytes).unwrap();
                let sizes = (chosen.record_size, chosen.first_record_size);
                assert_eq!((sizes, chosen.stripes), ((5_000, 500), 1));
            }
        }

        // SMT [6.3-6]
        #[test]
        fn its_version_must_be_offered() {
            let refused = answer(&speaking(1), &tls(), &own(&speaking(2)));
            assert_eq!(refused, Err(Disagreement::Version));
        }

        #[test]
        fn its_key_exchange_must_be_the_clients() {
            let refused = answer(&Config::default(), &registered(), &own(&Config::default()));
            assert_eq!(refused, Err(Disagreement::KeyExchange));
        }
    }

    mod agree {
        use super::*;

        fn outcome(side: Side, client: &Config, answer: &[u8]) -> Option<Disagreement> {
            agree(client, side, &own(client), answer).err()
        }

        // SMT [6.3-14], [6.3-18]
        #[test]
        fn an_answer_exceeds_no_part_of_the_offer() {
            let offer = with(5_000, 500, 1);
            assert_eq!(outcome(Side::Client, &offer, &own(&offer)), None);
            for answer in [with(5_001, 500, 1), with(5_000, 501, 1), with(5_000, 500, 2)] {
                let refused = outcome(Side::Client, &offer, &own(&answer));
                assert_eq!(refused, Some(Disagreement::Exceeds));
            }
        }

        // SMT [6.3-8]
        #[test]
        fn an_answer_echoes_the_key_exchange() {
            let config = Config::default();
            let answer = client_params(&config, &registered(), SessionIndex(8), &[]);
            let refused = outcome(Side::Client, &config, &answer);
            assert_eq!(refused, Some(Disagreement::KeyExchange));
        }

        // SMT [6.3-6]
        #[test]
        fn an_answer_chooses_the_one_version_that_was_offered() {
            let other = own(&speaking(2));
            let mut both = own(&speaking(1));
            // One more than one, behind it.
            both[1] = 2;
            both.insert(3, 2);
            for answer in [other, both] {
                let refused = outcome(Side::Client, &speaking(1), &answer);
                assert_eq!(refused, Some(Disagreement::Version));
            }
        }
    }
}

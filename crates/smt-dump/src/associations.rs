// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The associations that the ends of sessions have told each other (SPEC §15.4), and the packets of
//! PSP that open by them.
//!
//! An association travels in a control packet, with its key under the session's control key. It is
//! believed when the tag of that packet was found right.

use std::collections::HashMap;
use std::net::IpAddr;

use smt_record::{Aead, AeadProvider, AwsLc, Suite};
use smt_wire::AssociationFields;
use zeroize::Zeroizing;

use crate::psp::PspPacket;
use crate::rpcs::Ends;

/// All associations so far.
#[derive(Default)]
pub(crate) struct Associations {
    /// By the address of the end that opens, and the SPI.
    by_spi: HashMap<(IpAddr, u32), Vec<Association>>,
    /// The highest serial that an end has told in a session.
    newest: HashMap<(IpAddr, Option<Ends>), u32>,
}

struct Association {
    told: Told,
    version: u8,
    key: Zeroizing<[u8; KEY_BYTES]>,
    aead: Box<dyn Aead>,
}

/// The place where an association was told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Told {
    /// The ends of the session; `None` if its handshake was not captured.
    pub(crate) session: Option<Ends>,
    /// The serial among those that the side has told in it.
    pub(crate) serial: u32,
}

/// The outcome for a packet of PSP.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Opening {
    /// Its contents, all in the clear, and the association.
    Opened(Vec<u8>, Told),
    /// The capture has not all of it.
    CutOff,
    /// No association is known by its SPI and version.
    NoKey,
    /// The ICV is wrong under every key that is known. They were told in these sessions.
    Forged(Vec<Option<Ends>>),
}

impl Associations {
    /// Takes an association that this end has told in a session, with its key. One of another
    /// version than PSP's two that encrypt is passed over.
    pub(crate) fn learn(
        &mut self,
        receiver: IpAddr,
        session: Option<Ends>,
        fields: AssociationFields,
        key: &[u8],
    ) {
        let AssociationFields { serial, spi, version } = fields;
        let suite = match version {
            0 => Suite::Aes128Gcm,
            1 => Suite::Aes256Gcm,
            _ => return,
        };
        let Ok(key) = <[u8; KEY_BYTES]>::try_from(key).map(Zeroizing::new) else {
            return;
        };
        let newest = self.newest.entry((receiver, session)).or_default();
        *newest = serial.max(*newest);
        let told = Told { session, serial };
        let known = self.by_spi.entry((receiver, spi)).or_default();
        if known.iter().any(|it| it.told == told && it.key == key) {
            return;
        }
        // The nonce is SPI and IV as they stand (SPEC [15.3-5]): the IV stands for the number.
        let mut iv = [0; 12];
        iv[..4].copy_from_slice(&spi.to_be_bytes());
        if let Ok(aead) = AwsLc.aead(suite, &key[..suite.key_len()], iv) {
            known.push(Association { told, version, key, aead });
        }
    }

    /// Opens a packet that went to this address. A device that has got a new key may give an SPI
    /// once more, so the newest association of the SPI is tried first.
    pub(crate) fn open(&self, receiver: IpAddr, packet: &PspPacket<'_>) -> Opening {
        let Some(icv) = packet.icv else {
            return Opening::CutOff;
        };
        let known = self.by_spi.get(&(receiver, packet.spi)).into_iter().flatten();
        let known = known.filter(|association| association.version == packet.version);
        let known: Vec<&Association> = known.collect();
        if known.is_empty() {
            return Opening::NoKey;
        }
        let (clear, ciphertext) = packet.contents.split_at(packet.clear_length);
        let mut opened = clear.to_vec();
        opened.resize(packet.contents.len(), 0);
        let text = &mut opened[packet.clear_length..];
        let key = known.iter().rev().find(|association| {
            let aead = &association.aead;
            aead.open(packet.iv, packet.aad, ciphertext, icv, text).is_ok()
        });
        match key {
            Some(association) => Opening::Opened(opened, association.told),
            None => Opening::Forged(known.iter().map(|it| it.told.session).collect()),
        }
    }

    /// Whether DATA of a session may come to this end under an association: one of the newest two
    /// that it has told in this very session (SPEC [15.4-7]).
    pub(crate) fn are_for(&self, receiver: IpAddr, session: Option<Ends>, told: Told) -> bool {
        let newest = self.newest.get(&(receiver, session));
        told.session == session
            && newest.is_some_and(|newest| *newest <= told.serial.saturating_add(1))
    }
}

/// Bytes of a key as it is told; a shorter one has zeros behind.
const KEY_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const RECEIVER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const TOLD: Told = Told { session: None, serial: 1 };

    fn ends(client: u16) -> Option<Ends> {
        Some(Ends {
            client: (RECEIVER, client).into(),
            server: (RECEIVER, 17_379).into(),
            client_session: None,
            server_session: None,
            stripes_log2: 0,
        })
    }

    fn association(spi: u32, version: u8) -> AssociationFields {
        AssociationFields { serial: 1, spi, version }
    }

    /// A packet of 4 clear bytes, sealed by an IV as the specification has it.
    fn sealed(spi: u32, iv: u64, suite: Suite, key: [u8; KEY_BYTES]) -> Vec<u8> {
        let version = u8::from(suite == Suite::Aes256Gcm) << 2 | 1;
        let mut packet = vec![253, 1, 1, version];
        packet.extend(spi.to_be_bytes());
        packet.extend(iv.to_be_bytes());
        packet.extend(*b"head");
        let mut text = *b"text";
        let nonce: [u8; 12] = packet[4..16].try_into().unwrap();
        let aead = AwsLc.aead(suite, &key[..suite.key_len()], nonce).unwrap();
        let icv = aead.seal(0, &packet, &mut text).unwrap();
        packet.extend(text);
        packet.extend(icv);
        packet
    }

    fn opened(associations: &Associations, packet: &[u8]) -> Opening {
        let packet = PspPacket::parse(packet, 0, 253).unwrap();
        associations.open(RECEIVER, &packet)
    }

    mod open {
        use super::*;

        #[test]
        fn both_ciphers_open_by_the_key_that_was_told() {
            for (version, suite) in [(0, Suite::Aes128Gcm), (1, Suite::Aes256Gcm)] {
                let mut associations = Associations::default();
                associations.learn(RECEIVER, None, association(7, version), &[5; KEY_BYTES]);
                let packet = sealed(7, 1 << 40 | 3, suite, [5; KEY_BYTES]);
                let expected = Opening::Opened(b"headtext".to_vec(), TOLD);
                assert_eq!(opened(&associations, &packet), expected);
            }
        }

        #[test]
        fn the_keys_of_an_spi_that_was_given_twice_are_both_tried() {
            let mut associations = Associations::default();
            for byte in [5, 6, 5] {
                associations.learn(RECEIVER, None, association(7, 1), &[byte; KEY_BYTES]);
            }
            for byte in [5, 6] {
                let packet = sealed(7, 1, Suite::Aes256Gcm, [byte; KEY_BYTES]);
                let expected = Opening::Opened(b"headtext".to_vec(), TOLD);
                assert_eq!(opened(&associations, &packet), expected);
            }
            assert_eq!(associations.by_spi[&(RECEIVER, 7)].len(), 2);
        }

        #[test]
        fn a_change_anywhere_is_found() {
            let mut associations = Associations::default();
            associations.learn(RECEIVER, None, association(7, 1), &[5; KEY_BYTES]);
            let packet = sealed(7, 1, Suite::Aes256Gcm, [5; KEY_BYTES]);
            // Behind the SPI, by which the association is found.
            for place in 8..packet.len() {
                let mut changed = packet.clone();
                changed[place] ^= 1;
                let expected = Opening::Forged(vec![None]);
                assert_eq!(opened(&associations, &changed), expected, "{place}");
            }
        }

        #[test]
        fn another_end_s_spi_or_version_gives_no_key() {
            let mut associations = Associations::default();
            associations.learn(RECEIVER, None, association(8, 1), &[5; KEY_BYTES]);
            associations.learn(RECEIVER, None, association(7, 2), &[5; KEY_BYTES]);
            associations.learn(RECEIVER, None, association(7, 1), &[5; KEY_BYTES - 1]);
            let other = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            associations.learn(other, None, association(7, 1), &[5; KEY_BYTES]);
            let packet = sealed(7, 1, Suite::Aes256Gcm, [5; KEY_BYTES]);
            assert_eq!(opened(&associations, &packet), Opening::NoKey);
        }
    }

    mod are_for {
        use super::*;

        // SMT [15.4-7]
        #[test]
        fn the_newest_two_of_a_session_are_for_it_and_for_no_other() {
            let mut associations = Associations::default();
            for serial in 1..=3 {
                let fields = AssociationFields { serial, spi: serial, version: 1 };
                associations.learn(RECEIVER, ends(1), fields, &[5; KEY_BYTES]);
            }
            let are_for = |session: Option<Ends>, serial| {
                let told = Told { session: ends(1), serial };
                associations.are_for(RECEIVER, session, told)
            };
            let of_own = [1, 2, 3].map(|serial| are_for(ends(1), serial));
            assert_eq!(of_own, [false, true, true]);
            assert!(!are_for(ends(2), 3));
            assert!(!are_for(None, 3));
            // Nor where the other session has associations of its own.
            for session in [ends(2), None] {
                let fields = AssociationFields { serial: 3, spi: 9, version: 1 };
                associations.learn(RECEIVER, session, fields, &[6; KEY_BYTES]);
                let told = Told { session: ends(1), serial: 3 };
                assert!(!associations.are_for(RECEIVER, session, told), "{session:?}");
            }
        }
    }
}

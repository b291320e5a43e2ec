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

/// All associations so far, by the address of the end that opens, and the SPI.
#[derive(Default)]
pub(crate) struct Associations(HashMap<(IpAddr, u32), Vec<Association>>);

struct Association {
    key: Zeroizing<[u8; KEY_BYTES]>,
    aead: Box<dyn Aead>,
}

/// The outcome for a packet of PSP.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Opening {
    /// Its contents, all in the clear.
    Opened(Vec<u8>),
    /// No association is known by its SPI, or the capture has not all of it.
    NoKey,
    /// The ICV is wrong under every key that is known.
    Forged,
}

impl Associations {
    /// Takes an association that this end has told, with its key. One of another version than PSP's
    /// two that encrypt is passed over.
    pub(crate) fn learn(&mut self, receiver: IpAddr, fields: AssociationFields, key: &[u8]) {
        let suite = match fields.version {
            0 => Suite::Aes128Gcm,
            1 => Suite::Aes256Gcm,
            _ => return,
        };
        let Ok(key) = <[u8; KEY_BYTES]>::try_from(key).map(Zeroizing::new) else {
            return;
        };
        let known = self.0.entry((receiver, fields.spi)).or_default();
        if known.iter().any(|association| association.key == key) {
            return;
        }
        // The nonce is SPI and IV as they stand (SPEC [15.3-5]): the IV stands for the number.
        let mut iv = [0; 12];
        iv[..4].copy_from_slice(&fields.spi.to_be_bytes());
        if let Ok(aead) = AwsLc.aead(suite, &key[..suite.key_len()], iv) {
            known.push(Association { key, aead });
        }
    }

    /// Opens a packet that went to this address. A device that has got a new key may give an SPI
    /// once more, so the newest association of the SPI is tried first.
    pub(crate) fn open(&self, receiver: IpAddr, packet: &PspPacket<'_>) -> Opening {
        let known = self.0.get(&(receiver, packet.spi));
        let (Some(known), Some(icv)) = (known, packet.icv) else {
            return Opening::NoKey;
        };
        let (clear, ciphertext) = packet.contents.split_at(packet.clear_length);
        let mut opened = clear.to_vec();
        opened.resize(packet.contents.len(), 0);
        let text = &mut opened[packet.clear_length..];
        let is_opened = known.iter().rev().any(|association| {
            let aead = &association.aead;
            aead.open(packet.iv, packet.aad, ciphertext, icv, text)
                .is_ok()
        });
        match is_opened {
            true => Opening::Opened(opened),
            false => Opening::Forged,
        }
    }
}

/// Bytes of a key as it is told; a shorter one has zeros behind.
const KEY_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const RECEIVER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn association(spi: u32, version: u8) -> AssociationFields {
        AssociationFields {
            serial: 1,
            spi,
            version,
        }
    }

    /// A packet of 4 clear bytes, sealed by an IV as the specification has it.
    fn sealed(spi: u32, iv: u64, suite: Suite, key: [u8; KEY_BYTES]) -> Vec<u8> {
        let mut packet = vec![253, 1, 1, 0x01];
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
                associations.learn(RECEIVER, association(7, version), &[5; KEY_BYTES]);
                let packet = sealed(7, 1 << 40 | 3, suite, [5; KEY_BYTES]);
                let expected = Opening::Opened(b"headtext".to_vec());
                assert_eq!(opened(&associations, &packet), expected);
            }
        }

        #[test]
        fn the_keys_of_an_spi_that_was_given_twice_are_both_tried() {
            let mut associations = Associations::default();
            for byte in [5, 6, 5] {
                associations.learn(RECEIVER, association(7, 1), &[byte; KEY_BYTES]);
            }
            for byte in [5, 6] {
                let packet = sealed(7, 1, Suite::Aes256Gcm, [byte; KEY_BYTES]);
                let expected = Opening::Opened(b"headtext".to_vec());
                assert_eq!(opened(&associations, &packet), expected);
            }
            assert_eq!(associations.0[&(RECEIVER, 7)].len(), 2);
        }

        #[test]
        fn a_change_anywhere_is_found() {
            let mut associations = Associations::default();
            associations.learn(RECEIVER, association(7, 1), &[5; KEY_BYTES]);
            let packet = sealed(7, 1, Suite::Aes256Gcm, [5; KEY_BYTES]);
            // Behind the SPI, by which the association is found.
            for place in 8..packet.len() {
                let mut changed = packet.clone();
                changed[place] ^= 1;
                assert_eq!(opened(&associations, &changed), Opening::Forged, "{place}");
            }
        }

        #[test]
        fn another_end_s_spi_or_version_gives_no_key() {
            let mut associations = Associations::default();
            associations.learn(RECEIVER, association(8, 1), &[5; KEY_BYTES]);
            associations.learn(RECEIVER, association(7, 2), &[5; KEY_BYTES]);
            associations.learn(RECEIVER, association(7, 1), &[5; KEY_BYTES - 1]);
            let other = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            associations.learn(other, association(7, 1), &[5; KEY_BYTES]);
            let packet = sealed(7, 1, Suite::Aes256Gcm, [5; KEY_BYTES]);
            assert_eq!(opened(&associations, &packet), Opening::NoKey);
        }
    }
}

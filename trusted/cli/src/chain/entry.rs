// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accusations and configurations as they are in etcd: JSON, for operators to read.

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use smt_chain::{Accusation, Made};
use smt_replica::SignatureBytes;

/// An accusation in etcd.
#[derive(Deserialize, Serialize)]
struct AccusationText {
    number: u64,
    signature: String,
}

/// A configuration in etcd. Its order follows from its number.
#[derive(Deserialize, Serialize)]
struct ConfigurationText {
    number: u64,
    accusations: Vec<AccuserText>,
}

#[derive(Deserialize, Serialize)]
struct AccuserText {
    node: u32,
    signature: String,
}

/// An accusation as the value of its key.
pub(crate) fn accusation_text(it: &Accusation) -> Vec<u8> {
    let text = AccusationText { number: it.number, signature: signature_text(&it.signature) };
    serde_json::to_vec(&text).unwrap_or_default()
}

/// A configuration as the value of its key.
pub(crate) fn configuration_text(it: &Made) -> Vec<u8> {
    let accuser =
        |it: &Accusation| AccuserText { node: it.node, signature: signature_text(&it.signature) };
    let accusations = it.accusations.iter().map(accuser).collect();
    let text = ConfigurationText { number: it.number, accusations };
    serde_json::to_vec(&text).unwrap_or_default()
}

/// Reads the accusation of a node. Its signature is not verified.
pub(crate) fn read_accusation(node: u32, bytes: &[u8]) -> Option<Accusation> {
    let text: AccusationText = serde_json::from_slice(bytes).ok()?;
    Some(Accusation { node, number: text.number, signature: read_signature(&text.signature)? })
}

/// Reads a configuration, whose accusations are not verified.
pub(crate) fn read_configuration(bytes: &[u8]) -> Option<Made> {
    let text: ConfigurationText = serde_json::from_slice(bytes).ok()?;
    let number = text.number.checked_sub(1)?;
    let accusation = |it: &AccuserText| {
        Some(Accusation { node: it.node, number, signature: read_signature(&it.signature)? })
    };
    let accusations = text.accusations.iter().map(accusation).collect::<Option<_>>()?;
    Some(Made { number: text.number, accusations })
}

fn signature_text(signature: &SignatureBytes) -> String {
    HEXLOWER.encode(signature.as_flattened())
}

fn read_signature(text: &str) -> Option<SignatureBytes> {
    let bytes = HEXLOWER.decode(text.as_bytes()).ok()?;
    let (halves, rest) = bytes.as_chunks::<32>();
    rest.is_empty().then_some(halves)?.try_into().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use smt_replica::{Group, Options, SigningKey};
    use std::collections::BTreeMap;

    pub(crate) fn key(node: u32) -> SigningKey {
        SigningKey::from_bytes(&[node as u8 + 1; 32])
    }

    pub(crate) fn group() -> Group {
        let keys = (0..3).map(|it| key(it).verifying_key().to_bytes()).collect();
        Group::new(1, BTreeMap::new(), keys, Options::default())
    }

    #[test]
    fn accusations_and_configurations_that_are_written_to_etcd_are_read_again() {
        let group = group();
        let both = [0, 2].map(|it| Accusation::sign(&group, it, 4, &key(it)));
        assert_eq!(read_accusation(2, &accusation_text(&both[1])), Some(both[1]));
        let made = Made::of(&group, &both).unwrap();
        let read = read_configuration(&configuration_text(&made)).unwrap();
        assert!(read == made && read.is_proven(&group));
    }

    #[test]
    fn bytes_of_any_kind_are_neither_accusation_nor_configuration() {
        for bytes in [
            &b""[..],
            b"{}",
            b"{\"number\":0,\"accusations\":[]}",
            b"{\"number\":1,\"signature\":\"00\"}",
            b"{\"number\":1,\"accusations\":[{\"node\":0,\"signature\":\"zz\"}]}",
            b"\xff\xff",
        ] {
            assert_eq!(read_accusation(0, bytes), None);
            assert_eq!(read_configuration(bytes), None);
        }
    }
}

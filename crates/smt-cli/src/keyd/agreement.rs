// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keys of an agreement of two key daemons, whose messages are those of `smt-esp-io`.

use smt::Session;
use smt_esp_io::SuiteName;
use smt_esp_io::agreement::Spis;
use zeroize::Zeroizing;

use crate::failure::Failure;

/// The way of the packets that a key is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Way {
    ToListener,
    ToConnector,
}

/// The key of a session for packets of one way; nothing else gives it. Both SPIs are in its
/// context: two agreements of one session have different keys.
pub(super) fn key(
    session: &Session,
    suite: SuiteName,
    way: Way,
    spis: Spis,
) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let mut key = Zeroizing::new(vec![0; suite.key_bytes()]);
    session.export(LABEL, &context(suite, way, spis), &mut key)?;
    Ok(key)
}

fn context(suite: SuiteName, way: Way, spis: Spis) -> Vec<u8> {
    let way: &[u8] = match way {
        Way::ToListener => b"to listener ",
        Way::ToConnector => b"to connector ",
    };
    let spis = [spis.to_listener.to_be_bytes(), spis.to_connector.to_be_bytes()];
    [way, suite.name().as_bytes(), spis.as_flattened()].concat()
}

const LABEL: &str = "EXPORTER-smt-keyd esp";

#[cfg(test)]
mod tests {
    use super::*;

    const SPIS: Spis = Spis { to_listener: 0x8000_0001, to_connector: 0x8000_0002 };

    #[test]
    fn keys_of_different_ways_suites_and_agreements_have_different_contexts() {
        let swapped = Spis { to_listener: SPIS.to_connector, to_connector: SPIS.to_listener };
        let contexts = [
            context(SuiteName::Aes128Gcm, Way::ToListener, SPIS),
            context(SuiteName::Aes128Gcm, Way::ToConnector, SPIS),
            context(SuiteName::Aes256Gcm, Way::ToListener, SPIS),
            context(SuiteName::Aes128Gcm, Way::ToListener, swapped),
        ];
        for (at, one) in contexts.iter().enumerate() {
            assert!(!contexts[at + 1..].contains(one));
        }
    }
}

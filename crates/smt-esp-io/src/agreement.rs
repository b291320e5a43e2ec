// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The messages of two key daemons that agree on associations (`smt keyd`).
//!
//! 1. OFFER: the connecting end says its SPI. The listening end takes the key for what comes to it,
//!    and answers with its own SPI.
//! 2. The connecting end takes both keys, and sends under the new one from then on.
//! 3. SWITCH: the listening end sends under the new key too.
//! 4. RETIRE, a moment later: both ends give up what they had before.
//! 5. CHECK asks at any time whether the listening end has the keys of an agreement still.
//!
//! Not here: the keys, which come of the daemons' session.

use serde::{Deserialize, Serialize};

use crate::association::SuiteName;

/// A message of the connecting end.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Message {
    /// The connecting end's SPI, for a new agreement.
    Offer {
        /// The suite of both keys.
        suite: SuiteName,
        /// The number of packets to the connecting end.
        spi: u32,
    },
    /// The connecting end sends under the new key.
    Switch {
        /// The agreement.
        spis: Spis,
    },
    /// Earlier keys are given up.
    Retire {
        /// The agreement.
        spis: Spis,
    },
    /// Asks whether the keys are there still.
    Check {
        /// The agreement.
        spis: Spis,
    },
}

/// The listening end's answer.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// The key for packets in is taken.
    Taken {
        /// The number of packets to the listening end.
        spi: u32,
    },
    /// The other end has done what was asked.
    Done,
    /// The other end has no such keys, or not any more: agree anew.
    Unknown,
    /// The other end has not done it, for this reason.
    Refused {
        /// The reason, in words.
        reason: String,
    },
}

/// The numbers of an agreement, each its receiver's choice.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Spis {
    /// The number of packets to the listening end.
    pub to_listener: u32,
    /// The number of packets to the connecting end.
    pub to_connector: u32,
}

/// Why bytes are no message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The bytes are longer than any message.
    #[error("peer: the other key daemon has sent a message that is too long")]
    Long,
    /// The bytes are something else.
    #[error("peer: the other key daemon has sent no message: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// See [`MessageError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, MessageError> {
        if bytes.len() > LONGEST {
            return Err(MessageError::Long);
        }
        Ok(serde_json::from_slice(bytes)?)
    }
}

/// A message has a tenth of it.
const LONGEST: usize = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    const SPIS: Spis = Spis { to_listener: 0x8000_0001, to_connector: 0x8000_0002 };

    #[test]
    fn a_message_is_read_as_it_was_written() {
        for message in [
            Message::Offer { suite: SuiteName::Aes128Ccm8, spi: 7 },
            Message::Switch { spis: SPIS },
            Message::Retire { spis: SPIS },
            Message::Check { spis: SPIS },
        ] {
            let bytes = serde_json::to_vec(&message).unwrap();
            assert_eq!(Message::parse(&bytes).unwrap(), message);
        }
        assert!(Message::parse(b"{\"step\":\"offer\"}").is_err());
        assert!(Message::parse(&vec![b' '; LONGEST + 1]).is_err());
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The words of two key daemons that hand a session over, as JSON in a call of their own session.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use smt::{Fault, HandoverTerms, Suite, WallTime};
use smt_wire::Harmless;

use crate::failure::Failure;
use crate::handover_socket::HexId;

/// The connecting end's terms, but for the adopter that the other end chooses.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Offer {
    pub(super) client: HexId,
    /// TLS's number of the suite.
    pub(super) suite: u16,
    pub(super) valid_until: u64,
    pub(super) number: u64,
}

/// The listening end's answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "answer", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Reply {
    /// The adopter that has the session, and where it serves.
    Adopted {
        server: HexId,
        address: SocketAddr,
    },
    Refused {
        reason: String,
    },
}

impl Offer {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Failure> {
        if bytes.len() > LONGEST {
            return Err(Failure::of(Fault::Peer, "an offer that is too long"));
        }
        serde_json::from_slice(bytes)
            .map_err(|error| Failure::of(Fault::Peer, shown(&format!("no offer: {error}"))))
    }

    /// Refuses an offer that the serving process would have to remember for long: a client that
    /// begins no session would take the room of others.
    pub(super) fn check_life(&self, now: WallTime) -> Result<(), Failure> {
        let seconds = self.valid_until.saturating_sub(now.as_secs());
        if seconds > LIFE_MAX {
            let text = format!(
                "an offer that is good for {seconds} s, and at most {LIFE_MAX} are taken; look at \
                 the clocks of both hosts"
            );
            return Err(Failure::of(Fault::Peer, text));
        }
        Ok(())
    }

    pub(super) fn terms(&self, server: HexId) -> Result<HandoverTerms, Failure> {
        let suite = Suite::from_code(self.suite);
        Ok(HandoverTerms {
            client: self.client.0,
            server: server.0,
            suite: suite.ok_or_else(|| Failure::of(Fault::Peer, "an offer of no suite"))?,
            valid_until: WallTime::from_secs(self.valid_until),
            number: self.number,
        })
    }
}

impl Reply {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Failure> {
        if bytes.len() > LONGEST_REPLY {
            return Err(Failure::of(Fault::Peer, "an answer that is too long"));
        }
        let reply: Self = serde_json::from_slice(bytes).map_err(|error| {
            Failure::of(Fault::Peer, shown(&format!("this is no answer: {error}")))
        })?;
        Ok(match reply {
            Self::Refused { reason } => Self::Refused { reason: shown(&reason) },
            adopted @ Self::Adopted { .. } => adopted,
        })
    }

    /// Tells the other end why there is no session.
    pub(super) fn refused(failure: &Failure) -> Self {
        Self::Refused { reason: shown(&failure.line()) }
    }
}

/// Words of the other host as a terminal may show them: one line, not long, and without characters
/// that move others.
pub(super) fn shown(text: &str) -> String {
    let mut line: String = Harmless(text).to_string().chars().take(SHOWN_MAX).collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        line.pop();
        line.push('…');
    }
    line
}

/// An offer has a fifth of it.
const LONGEST: usize = 1 << 10;
/// Bytes of a reply: a reason has 300 characters, of four bytes at most each.
pub(super) const LONGEST_REPLY: usize = 2 << 10;
/// Characters of the other host's words that are shown.
const SHOWN_MAX: usize = 300;
/// Seconds for which an offer may be good: twice what this program says, for clocks that differ.
const LIFE_MAX: u64 = 120;

#[cfg(test)]
mod tests {
    use super::*;
    use smt::AdopterId;

    #[test]
    fn an_offer_is_read_as_it_was_written() {
        let offer =
            Offer { client: HexId(AdopterId([1; 16])), suite: 0x1302, valid_until: 7, number: 8 };
        let bytes = serde_json::to_vec(&offer).unwrap();
        assert_eq!(Offer::parse(&bytes).unwrap(), offer);
        let terms = offer.terms(HexId(AdopterId([2; 16]))).unwrap();
        assert_eq!((terms.client, terms.server.0[0]), (offer.client.0, 2));
        assert!(Offer::parse(b"{}").is_err());
        assert!(Offer::parse(&vec![b' '; LONGEST + 1]).is_err());
        assert!(Offer { suite: 1, ..offer }.terms(offer.client).is_err());
    }

    #[test]
    fn an_offer_that_is_good_for_long_is_refused() {
        let offer = |valid_until| Offer {
            client: HexId(AdopterId([1; 16])),
            suite: 0x1302,
            valid_until,
            number: 0,
        };
        let now = WallTime::from_secs(1_000);
        assert!(offer(1_000 + LIFE_MAX).check_life(now).is_ok());
        // It is too old for the adopter, which says so.
        assert!(offer(1).check_life(now).is_ok());
        let failure = offer(1_000 + 3_600).check_life(now).unwrap_err();
        assert!(failure.text().contains("good for 3600 s, and at most 120"));
        assert!(offer(u64::MAX).check_life(now).is_err());
    }

    #[test]
    fn words_of_the_other_host_are_one_line_of_300_characters_at_most() {
        let reply = |reason: &str| {
            let reason = reason.to_owned();
            let bytes = serde_json::to_vec(&Reply::Refused { reason }).unwrap();
            match Reply::parse(&bytes) {
                Ok(Reply::Refused { reason }) => Ok(reason),
                Ok(Reply::Adopted { .. }) => panic!("it was refused"),
                Err(failure) => Err(failure.text().to_owned()),
            }
        };
        let told = reply("no\u{1B}[2J room\nsmt: all is well\u{202E}").unwrap();
        assert_eq!(told, "no\u{FFFD}[2J room\u{FFFD}smt: all is well\u{FFFD}");
        let long = reply(&"é".repeat(SHOWN_MAX + 1)).unwrap();
        assert_eq!(long.chars().count(), SHOWN_MAX);
        assert!(long.ends_with('…'));
        assert!(reply(&"e".repeat(LONGEST_REPLY)).is_err());
        // The reader of JSON quotes words of the other host as well.
        let unknown = "{\"answer\":\"refused\",\"\\u001b[2J\":1}";
        let failure = Reply::parse(unknown.as_bytes()).unwrap_err();
        assert!(!failure.text().contains(char::is_control), "{}", failure.text());
        assert!(failure.text().contains("[2J"));
        let failure = Offer::parse(unknown.as_bytes()).unwrap_err();
        assert!(!failure.text().contains(char::is_control), "{}", failure.text());
    }

    /// The longest that this program sends is one that it takes.
    #[test]
    fn the_longest_reason_is_taken() {
        let failure = Failure::new("\u{10FFFF}".repeat(1_000));
        let bytes = serde_json::to_vec(&Reply::refused(&failure)).unwrap();
        assert!(Reply::parse(&bytes).is_ok(), "{} bytes", bytes.len());
        let failure = Failure::new("\"".repeat(1_000));
        let bytes = serde_json::to_vec(&Reply::refused(&failure)).unwrap();
        assert!(Reply::parse(&bytes).is_ok(), "{} bytes", bytes.len());
    }
}

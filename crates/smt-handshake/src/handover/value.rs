// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A session that is handed over, as a value and as bytes (SPEC §7.5).

use std::fmt;

use smt_proto::WallTime;
use smt_record::{Side, Suite};
use zeroize::Zeroizing;

use super::HandoverError;
use crate::external_psk::key::{KeyEnds, RegisteredKey};
use crate::limits::HANDOVER_NAME_LEN_MAX;

/// The label of the exported secret (SPEC §7.4) that a value is made of.
pub const HANDOVER_LABEL: &str = "EXPORTER-smt-1 handover";

/// Bytes of that exported secret: the value's name, and its secret.
pub const EXPORTED_LEN: usize = NAME_LEN + SECRET_LEN;

/// Bytes of a value, at most.
pub const HANDOVER_LEN_MAX: usize = FIXED_LEN + HANDOVER_NAME_LEN_MAX;

/// One run of a process that adopts sessions: 16 random bytes. A process that begins anew has
/// others, so that it adopts nothing that was for its predecessor.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub struct AdopterId(pub [u8; 16]);

impl fmt::Display for AdopterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for AdopterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The agreement of both control processes on a session that they hand over. Both export with
/// these terms: if they differ in one, the two values have nothing in common.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HandoverTerms {
    /// The adopter that begins the handshake.
    pub client: AdopterId,
    /// The adopter that answers it.
    pub server: AdopterId,
    /// The suite of the session.
    pub suite: Suite,
    /// Until when the value can be adopted.
    pub valid_until: WallTime,
    /// The number of the session among those that the control processes hand over in one session
    /// of theirs: no two have the same.
    pub number: u64,
}

impl HandoverTerms {
    /// The context of the exported secret.
    #[must_use]
    pub fn context(&self) -> [u8; TERMS_LEN] {
        let mut context = [0; TERMS_LEN];
        context[..2].copy_from_slice(&self.suite.code().to_be_bytes());
        context[2..10].copy_from_slice(&self.valid_until.as_secs().to_be_bytes());
        context[10..18].copy_from_slice(&self.number.to_be_bytes());
        context[18..34].copy_from_slice(&self.client.0);
        context[34..].copy_from_slice(&self.server.0);
        context
    }

    fn parse(bytes: &[u8; TERMS_LEN]) -> Result<Self, HandoverError> {
        let (suite, rest) = take(bytes);
        let (valid_until, rest) = take(rest);
        let (number, rest) = take(rest);
        let (client, rest) = take(rest);
        let suite = Suite::from_code(u16::from_be_bytes(suite));
        Ok(Self {
            client: AdopterId(client),
            server: AdopterId(take(rest).0),
            suite: suite.ok_or(HandoverError::Malformed { what: "its suite is unknown" })?,
            valid_until: WallTime::from_secs(u64::from_be_bytes(valid_until)),
            number: u64::from_be_bytes(number),
        })
    }

    /// The adopter of this side.
    #[must_use]
    pub const fn adopter(&self, side: Side) -> AdopterId {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }
}

/// A session that is handed over to one side's adopter. Its secret is wiped when it is dropped.
pub struct Handover {
    side: Side,
    terms: HandoverTerms,
    credentials_end: Option<WallTime>,
    name: [u8; NAME_LEN],
    secret: Zeroizing<[u8; SECRET_LEN]>,
    peer_name: String,
}

impl Handover {
    /// Makes the value for one side. `exported` is what the control processes' session exports by
    /// [`HANDOVER_LABEL`] and [`HandoverTerms::context`]. `peer_name` is the name that the other
    /// end has proved, and `credentials_end` when what it has proved it by counts no more.
    ///
    /// # Errors
    /// [`HandoverError::Name`].
    pub fn new(
        side: Side,
        terms: HandoverTerms,
        peer_name: &str,
        credentials_end: Option<WallTime>,
        exported: &Zeroizing<[u8; EXPORTED_LEN]>,
    ) -> Result<Self, HandoverError> {
        if !is_name(peer_name) {
            return Err(HandoverError::Name);
        }
        let (name, secret) = take(&exported[..]);
        let mut value = Self {
            side,
            terms,
            credentials_end,
            name,
            secret: Zeroizing::new([0; SECRET_LEN]),
            peer_name: peer_name.to_owned(),
        };
        value.secret.copy_from_slice(secret);
        Ok(value)
    }

    /// The side that adopts it.
    #[must_use]
    pub const fn side(&self) -> Side {
        self.side
    }

    /// The agreement of both control processes.
    #[must_use]
    pub const fn terms(&self) -> &HandoverTerms {
        &self.terms
    }

    /// The name that the other end has proved to the control process.
    #[must_use]
    pub fn peer_name(&self) -> &str {
        &self.peer_name
    }

    /// When the credentials of the other end count no more: the session ends then.
    #[must_use]
    pub const fn credentials_end(&self) -> Option<WallTime> {
        self.credentials_end
    }

    pub(super) const fn name(&self) -> &[u8; NAME_LEN] {
        &self.name
    }

    /// The name as it is shown.
    pub(super) fn shown_name(&self) -> String {
        AdopterId(self.name).to_string()
    }

    /// The registered key that the adopter's handshake is by.
    pub(super) fn key(&self) -> Result<RegisteredKey, HandoverError> {
        let own = self.terms.adopter(self.side).to_string();
        let peer = self.terms.adopter(self.side.peer()).to_string();
        let ends = KeyEnds { own: &own, peer: &peer };
        let suite = self.terms.suite;
        let key = RegisteredKey::from_secret(&self.name, ends, suite, &self.secret[..])?;
        Ok(key)
    }

    /// The value as bytes, for a socket between two processes of one user and for nothing else:
    /// whoever reads them can be either end.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        // The capacity suffices: growing would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(HANDOVER_LEN_MAX));
        bytes.extend_from_slice(MAGIC);
        bytes.push(VERSION);
        bytes.push(match self.side {
            Side::Client => 0,
            Side::Server => 1,
        });
        bytes.extend_from_slice(&self.terms.context());
        let end = self.credentials_end.map_or(0, WallTime::as_secs);
        bytes.extend_from_slice(&end.to_be_bytes());
        bytes.extend_from_slice(&self.name);
        bytes.extend_from_slice(&self.secret[..]);
        // It has at most 255 bytes.
        bytes.push(self.peer_name.len() as u8);
        bytes.extend_from_slice(self.peer_name.as_bytes());
        bytes
    }

    /// Reads a value.
    ///
    /// # Errors
    /// The bytes are none, or one of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HandoverError> {
        let malformed = |what| HandoverError::Malformed { what };
        let Some((fixed, peer_name)) = bytes.split_first_chunk::<FIXED_LEN>() else {
            return Err(malformed("it is too short"));
        };
        let (magic, rest) = take(fixed);
        if &magic != MAGIC {
            return Err(malformed("it does not begin as one"));
        }
        let ([version, side], rest) = take(rest);
        if version != VERSION {
            return Err(HandoverError::Version { found: version, known: VERSION });
        }
        let side = match side {
            0 => Side::Client,
            1 => Side::Server,
            _ => return Err(malformed("it is for neither side")),
        };
        let (terms, rest) = take(rest);
        let terms = HandoverTerms::parse(&terms)?;
        let (end, rest) = take(rest);
        let end = u64::from_be_bytes(end);
        let (exported, rest) = rest.split_at(EXPORTED_LEN);
        if usize::from(rest[0]) != peer_name.len() {
            return Err(malformed("its length is another than it says"));
        }
        let peer_name = std::str::from_utf8(peer_name).unwrap_or_default();
        let mut secret = Zeroizing::new([0; EXPORTED_LEN]);
        secret.copy_from_slice(exported);
        let end = (end != 0).then(|| WallTime::from_secs(end));
        Self::new(side, terms, peer_name, end, &secret)
            .map_err(|_| malformed("the peer's name is none"))
    }
}

impl fmt::Debug for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handover")
            .field("side", &self.side)
            .field("terms", &self.terms)
            .field("credentials_end", &self.credentials_end)
            .field("name", &self.shown_name())
            .field("peer_name", &self.peer_name)
            .finish_non_exhaustive()
    }
}

/// Whether a name can be shown, and its length be written.
fn is_name(name: &str) -> bool {
    (1..=HANDOVER_NAME_LEN_MAX).contains(&name.len()) && !name.contains(char::is_control)
}

/// The first bytes, and the others. The caller knows that there are enough.
fn take<const N: usize>(bytes: &[u8]) -> ([u8; N], &[u8]) {
    let (first, rest) = bytes.split_at(N);
    let mut taken = [0; N];
    taken.copy_from_slice(first);
    (taken, rest)
}

const MAGIC: &[u8; 4] = b"SMTH";
const VERSION: u8 = 1;
const NAME_LEN: usize = 16;
const SECRET_LEN: usize = 32;
/// Suite, end of validity, number and both adopters.
const TERMS_LEN: usize = 2 + 8 + 8 + 16 + 16;
/// All but the peer's name: with the magic, the version, the side and the credentials' end.
const FIXED_LEN: usize = 4 + 1 + 1 + TERMS_LEN + 8 + EXPORTED_LEN + 1;

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) const TERMS: HandoverTerms = HandoverTerms {
        client: AdopterId([0xC1; 16]),
        server: AdopterId([0x5E; 16]),
        suite: Suite::Aes256Gcm,
        valid_until: WallTime::from_secs(1_800_000_060),
        number: 7,
    };

    fn exported() -> Zeroizing<[u8; EXPORTED_LEN]> {
        Zeroizing::new(core::array::from_fn(|place| place as u8))
    }

    fn value() -> Handover {
        let end = Some(WallTime::from_secs(1_900_000_000));
        Handover::new(Side::Server, TERMS, "web-7.example", end, &exported()).unwrap()
    }

    #[test]
    fn a_value_is_read_as_it_was_written() {
        let bytes = value().to_bytes();
        assert!(bytes.len() <= HANDOVER_LEN_MAX);
        let read = Handover::from_bytes(&bytes).unwrap();
        assert_eq!(*read.to_bytes(), *bytes);
        assert_eq!((read.side(), *read.terms()), (Side::Server, TERMS));
        assert_eq!(read.peer_name(), "web-7.example");
        assert_eq!(read.name()[..], exported()[..16]);
        assert_eq!(read.secret[..], exported()[16..]);
        let end = read.credentials_end().map(WallTime::as_secs);
        assert_eq!(end, Some(1_900_000_000));
    }

    // SMT [7.5-3]
    #[test]
    fn a_value_that_is_cut_or_longer_is_refused() {
        let mut bytes = value().to_bytes();
        for length in 0..bytes.len() {
            assert!(Handover::from_bytes(&bytes[..length]).is_err(), "{length}");
        }
        bytes.push(b'x');
        assert!(Handover::from_bytes(&bytes).is_err());
    }

    #[test]
    fn fields_out_of_range_are_refused() {
        let good = value().to_bytes();
        let refused = |place: usize, byte: u8| {
            let mut bytes = good.to_vec();
            bytes[place] = byte;
            Handover::from_bytes(&bytes).unwrap_err().to_string()
        };
        assert!(refused(0, b'X').contains("begin as one"));
        assert!(refused(4, 2).contains("version 2, and this process knows 1"));
        assert!(refused(5, 2).contains("neither side"));
        assert!(refused(6, 0xFF).contains("suite"));
        for byte in [b'\n', 0x1B, 0xFF] {
            assert!(refused(good.len() - 1, byte).contains("name"), "{byte}");
        }
    }

    #[test]
    fn a_name_that_is_empty_or_too_long_is_refused() {
        for name in ["", &"n".repeat(256), "a\tb"] {
            let value = Handover::new(Side::Client, TERMS, name, None, &exported());
            assert!(matches!(value, Err(HandoverError::Name)), "{name:?}");
        }
        let longest = Handover::new(Side::Client, TERMS, &"n".repeat(255), None, &exported());
        assert_eq!(longest.unwrap().to_bytes().len(), HANDOVER_LEN_MAX);
    }

    #[test]
    fn a_value_shows_no_secret() {
        let shown = format!("{:?}", value());
        assert!(shown.contains("web-7.example") && shown.contains("000102030405"));
        assert!(!shown.contains("10111213") && !shown.contains("16, 17, 18"), "{shown}");
    }

    // SMT [7.5-2]
    #[test]
    fn each_term_is_in_the_context() {
        let others = [
            HandoverTerms { client: TERMS.server, server: TERMS.client, ..TERMS },
            HandoverTerms { suite: Suite::Aes128Gcm, ..TERMS },
            HandoverTerms { valid_until: WallTime::from_secs(1), ..TERMS },
            HandoverTerms { number: 8, ..TERMS },
        ];
        for other in others {
            assert_ne!(other.context(), TERMS.context());
            assert_eq!(HandoverTerms::parse(&other.context()).unwrap(), other);
        }
    }
}

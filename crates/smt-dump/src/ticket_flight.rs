// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The clear parts of the flights of a handshake by ticket (SPEC §6.7).
//!
//! Not here: the sealed part of flight 1, a client's certificate and early data. No key log has its
//! key, which is that of the ticket.

use std::fmt;

use smt_record::Suite;

/// The clear parts of a flight that is whole.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum TicketFlight {
    Client {
        suite: u16,
        /// SHA-256 of the ticket.
        ticket: [u8; 32],
        has_forward_secrecy: bool,
        /// Bytes of the sealed part, with its tag.
        sealed: usize,
    },
    Taken {
        takes_early: bool,
    },
    Refused(u8),
}

impl TicketFlight {
    /// Reads the key exchange bytes of flight 1 or 2; `None` if they are malformed.
    pub(crate) fn parse(flight: u8, bytes: &[u8]) -> Option<Self> {
        match flight {
            1 => Self::client(bytes),
            _ => Some(match bytes.first()? {
                first @ (0 | 4) => Self::Taken { takes_early: *first == 4 },
                refusal => Self::Refused(*refusal),
            }),
        }
    }

    fn client(bytes: &[u8]) -> Option<Self> {
        let (suite, rest) = bytes.split_first_chunk()?;
        let suite = u16::from_be_bytes(*suite);
        let (ticket, rest) = rest.split_first_chunk()?;
        let (_random, rest) = rest.split_first_chunk::<32>()?;
        let (_share, rest) = counted(rest)?;
        let (ephemeral, rest) = counted(rest)?;
        let binder = match Suite::from_code(suite)? {
            Suite::Aes256Gcm => 48,
            Suite::Aes128Gcm | Suite::ChaCha20Poly1305 => 32,
        };
        let (sealed, rest) = counted(rest.get(binder..)?)?;
        rest.is_empty().then_some(Self::Client {
            suite,
            ticket: *ticket,
            has_forward_secrecy: !ephemeral.is_empty(),
            sealed: sealed.len(),
        })
    }
}

/// A string with its length as u16 before it, and what is behind it.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u16::from_be_bytes(*length).into())
}

/// The first half of a ticket's hash, in hex.
pub(crate) fn short(ticket: &[u8; 32]) -> String {
    ticket[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for TicketFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client { suite, ticket, has_forward_secrecy, sealed } => {
                let kind = match has_forward_secrecy {
                    true => "with forward secrecy",
                    false => "without forward secrecy",
                };
                let ticket = short(ticket);
                write!(f, "by ticket {ticket}.., suite {suite:04x}, {kind}, {sealed} bytes sealed")
            }
            Self::Taken { takes_early: true } => f.write_str("ticket taken, early data taken"),
            Self::Taken { takes_early: false } => f.write_str("ticket taken"),
            Self::Refused(code) => {
                let why = match code {
                    2 => "forward secrecy or a client certificate is wanted",
                    3 => "the client's certificate is not trusted",
                    _ => "unknown ticket",
                };
                write!(f, "ticket refused: {why}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight_1(ephemeral: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x13, 0x02];
        bytes.extend_from_slice(&[0xAB; 32]);
        bytes.extend_from_slice(&[1; 32]);
        bytes.extend_from_slice(&[0, 3, 7, 7, 7]);
        bytes.extend_from_slice(&[0, ephemeral.len() as u8]);
        bytes.extend_from_slice(ephemeral);
        bytes.extend_from_slice(&[2; 48]);
        bytes.extend_from_slice(&[0, 2, 9, 9]);
        bytes
    }

    #[test]
    fn flight_1_says_ticket_suite_and_kind() {
        let text = |ephemeral: &[u8]| {
            let parsed = TicketFlight::parse(1, &flight_1(ephemeral)).unwrap();
            parsed.to_string()
        };
        let begin = format!("by ticket {}.., suite 1302, ", "ab".repeat(16));
        assert_eq!(text(&[5]), format!("{begin}with forward secrecy, 2 bytes sealed"));
        assert_eq!(text(&[]), format!("{begin}without forward secrecy, 2 bytes sealed"));
    }

    #[test]
    fn a_flight_1_that_is_cut_or_goes_on_says_nothing() {
        let whole = flight_1(&[5]);
        for length in 0..whole.len() {
            assert_eq!(TicketFlight::parse(1, &whole[..length]), None);
        }
        assert_eq!(TicketFlight::parse(1, &[&whole[..], &[0]].concat()), None);
    }

    #[test]
    fn flight_2_says_what_became_of_ticket_and_early_data() {
        let text = |first: u8| TicketFlight::parse(2, &[first, 0]).unwrap().to_string();
        assert_eq!(text(0), "ticket taken");
        assert_eq!(text(4), "ticket taken, early data taken");
        assert_eq!(text(1), "ticket refused: unknown ticket");
        assert_eq!(text(200), text(1));
        assert_ne!(text(2), text(3));
    }
}

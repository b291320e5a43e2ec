// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tickets that may be anything (SPEC §6.7): what is well formed, and what a client believes.
//!
//! The input is either a ticket's bytes, or changes to a good one, by its first byte. A ticket is
//! taken if the specification permits it (a model of its own), and a changed one never believed.
//! Not here: handshakes by ticket (see [`crate::ticket_flight`]).

use std::sync::OnceLock;

use smt_handshake::{IssuedTicket, Ticket, TicketIssuer, TicketPlan, TicketVerifier};
use smt_pki::EphemeralCa;
use smt_proto::WallTime;

/// Checks one ticket.
pub fn check(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else {
        return;
    };
    let good = good();
    if kind % 2 == 0 {
        check_ticket(good, rest);
        return;
    }
    // Pairs of a place and a value to add, and at last where the ticket ends.
    let mut ticket = good.ticket.clone();
    let mut changes = rest.chunks_exact(3);
    for change in changes.by_ref() {
        let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % ticket.len();
        ticket[at] = ticket[at].wrapping_add(change[2]);
    }
    match changes.remainder() {
        [] => {}
        [cut] => ticket.truncate(ticket.len().saturating_sub(usize::from(*cut))),
        more => ticket.extend_from_slice(more),
    }
    check_ticket(good, &ticket);
}

fn check_ticket(good: &Good, bytes: &[u8]) {
    let parsed = Ticket::from_bytes(bytes);
    assert_eq!(parsed.is_ok(), permitted(bytes).is_some());
    if let Ok(ticket) = &parsed {
        assert_eq!(ticket.as_bytes(), bytes);
        assert!(ticket.validity().end() - ticket.validity().start() <= 3_600);
    }
    let verified = good.verifier.verify(bytes, &good.chain, NAME, WallTime::from_secs(good.now));
    match verified {
        Ok(_) => assert!(bytes == good.ticket, "a changed ticket is believed"),
        Err(failure) => {
            assert!(bytes != good.ticket, "{}", failure.text);
            let is_one_line = !failure.text.chars().any(char::is_control);
            assert!(is_one_line, "{:?}", failure.text);
        }
    }
}

/// `Some` if the specification permits these bytes as a ticket (SPEC [6.7-1], [6.7-4]).
fn permitted(bytes: &[u8]) -> Option<()> {
    if bytes.len() > 16_384 {
        return None;
    }
    let mut rest = bytes;
    let mut take = |length: usize| -> Option<&[u8]> {
        let (taken, behind) = rest.split_at_checked(length)?;
        rest = behind;
        Some(taken)
    };
    let number =
        |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let length = |bytes: &[u8]| usize::try_from(number(bytes)).ok();
    let is_known = take(1)? == [1] && (1..=3).contains(&take(1)?[0]);
    let suites = length(take(1)?)?;
    let suites = take(suites)?;
    let is_suite = |code: &[u8]| matches!(code, [0x13, 1..=3]);
    let are_suites = !suites.is_empty() && suites.chunks(2).all(is_suite);
    take(16)?;
    let (begin, end) = (number(take(8)?), number(take(8)?));
    let is_short = end.checked_sub(begin).is_some_and(|life| life <= 3_600);
    let are_flags = take(1)?[0] < 8;
    let share = length(take(2)?)?;
    take(share)?;
    let names = length(take(2)?)?;
    let mut names = take(names)?;
    while let [length, behind @ ..] = names {
        let (name, behind) = behind.split_at_checked(usize::from(*length))?;
        std::str::from_utf8(name).ok()?;
        names = behind;
    }
    take(32 + 2)?;
    let signature = length(take(2)?)?;
    take(signature)?;
    (rest.is_empty() && is_known && are_suites && is_short && are_flags).then_some(())
}

/// A ticket that is believed; made once.
struct Good {
    verifier: TicketVerifier,
    ticket: Vec<u8>,
    chain: Vec<Vec<u8>>,
    now: u64,
}

fn good() -> &'static Good {
    static GOOD: OnceLock<Good> = OnceLock::new();
    GOOD.get_or_init(|| {
        let now = std::time::UNIX_EPOCH.elapsed().expect("it is after 1970").as_secs();
        let authority = EphemeralCa::new().expect("the system has randomness");
        let identity = authority.server(&[NAME]).expect("it has a name");
        let issuer = TicketIssuer::new(&identity, TicketPlan::new([NAME])).expect("a good plan");
        let IssuedTicket { ticket, chain, .. } =
            issuer.issue(WallTime::from_secs(now)).expect("the system has randomness");
        let trust = authority.trust().expect("it was just made");
        Good {
            verifier: TicketVerifier::new(trust).expect("it has roots"),
            ticket: ticket.as_bytes().to_vec(),
            chain,
            now,
        }
    })
}

const NAME: &str = "a.example";

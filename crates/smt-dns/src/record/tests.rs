// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use smt_handshake::{TicketIssuer, TicketPlan};
use smt_pki::EphemeralCa;

/// A ticket of a server of this name, and its chain.
pub(crate) fn ticket(name: &str) -> (Ticket, Vec<Vec<u8>>) {
    let identity = EphemeralCa::new().unwrap().server(&[name]).unwrap();
    let issuer = TicketIssuer::new(&identity, TicketPlan::new([name])).unwrap();
    let issued = issuer.issue(crate::wall_now()).unwrap();
    (issued.ticket, issued.chain)
}

fn record() -> TicketRecord {
    let (ticket, chain) = ticket("db7.example");
    TicketRecord::new(ticket, &chain).unwrap()
}

/// RDATA of these values behind the priority and the root's name.
fn rdata(priority: u16, params: &[(u16, &[u8])]) -> Vec<u8> {
    let mut out = priority.to_be_bytes().to_vec();
    out.push(0);
    for (key, value) in params {
        out.extend_from_slice(&key.to_be_bytes());
        out.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        out.extend_from_slice(value);
    }
    out
}

fn with_chain(chain: &[u8]) -> Result<TicketRecord, RecordError> {
    let (ticket, _) = ticket("db7.example");
    TicketRecord::from_rdata(&rdata(1, &[(65_280, ticket.as_bytes()), (65_281, chain)]))
}

#[test]
fn a_record_comes_back_from_its_bytes() {
    let record = record();
    let bytes = record.to_rdata();
    assert_eq!(TicketRecord::from_rdata(&bytes), Ok(record.clone()));
    assert_eq!(
        bytes.len(),
        7 + record.ticket.as_bytes().len() + 4 + {
            record.chain.as_ref().unwrap().iter().map(|der| 2 + der.len()).sum::<usize>()
        }
    );
}

#[test]
fn the_bytes_are_those_of_the_specification() {
    let (ticket, chain) = ticket("db7.example");
    let framed = chain_bytes(&chain).unwrap();
    let expected = rdata(1, &[(65_280, ticket.as_bytes()), (65_281, &framed)]);
    let record = TicketRecord::new(ticket, &chain).unwrap();
    assert_eq!(record.to_rdata(), expected);
}

// SMT [6.9-2]
#[test]
fn a_chain_that_does_not_fit_is_left_out() {
    let (ticket, chain) = ticket("db7.example");
    let room = RECORD_WITH_CHAIN_LEN_MAX - 7 - ticket.as_bytes().len() - 4 - 2;
    let of_length = |length| TicketRecord::new(ticket.clone(), &[vec![1; length]]).unwrap();
    assert!(of_length(room).chain.is_some());
    assert_eq!(of_length(room).to_rdata().len(), RECORD_WITH_CHAIN_LEN_MAX);
    assert_eq!(of_length(room + 1).chain, None);
    assert_eq!(of_length(70_000).chain, None);
    let many = vec![chain[0].clone(); 11];
    assert_eq!(TicketRecord::new(ticket, &many).unwrap().chain, None);
}

// SMT [6.9-2]
#[test]
fn a_ticket_of_names_without_measure_has_no_record() {
    let label = "a".repeat(60);
    let of_names = |count: usize| {
        let names = (0..count).map(|number| format!("{label}.{label}.{label}.n{number}.example"));
        let names: Vec<String> = names.collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let identity = EphemeralCa::new().unwrap().server(&names).unwrap();
        let issuer = TicketIssuer::new(&identity, TicketPlan::new(names)).unwrap();
        let issued = issuer.issue(crate::wall_now()).unwrap();
        TicketRecord::new(issued.ticket, &issued.chain).map(|record| record.to_rdata().len())
    };
    assert!(of_names(80).is_ok_and(|length| length <= RECORD_LEN_MAX));
    assert_eq!(of_names(100), Err(RecordError::TooLong));
}

#[test]
fn other_keys_are_left_to_others_unless_they_are_demanded() {
    let (ticket, _) = ticket("db7.example");
    let ticket = ticket.as_bytes();
    let port = (3, &[0x43, 0xe3][..]);
    let private = (65_300, &b"other"[..]);
    for params in [
        vec![port, (65_280, ticket), private],
        vec![(0, &[0xff, 0x00][..]), (65_280, ticket)],
        vec![(0, &[0xff, 0x00, 0xff, 0x01][..]), (65_280, ticket)],
    ] {
        TicketRecord::from_rdata(&rdata(1, &params)).unwrap();
    }
    let demanded = rdata(1, &[(0, &[0xff, 0x14]), (65_280, ticket), private]);
    let refused = TicketRecord::from_rdata(&demanded);
    assert_eq!(refused, Err(RecordError::Mandatory(65_300)));
}

// SMT [6.9-2]
#[test]
fn records_without_a_ticket_are_refused() {
    let (ticket, _) = ticket("db7.example");
    let ticket = ticket.as_bytes();
    for (bytes, error) in [
        (rdata(0, &[(65_280, ticket)]), RecordError::Alias),
        (rdata(1, &[]), RecordError::NoTicket),
        (rdata(1, &[(65_281, b"x")]), RecordError::NoTicket),
        (vec![], RecordError::NotSvcb),
        (vec![0], RecordError::NotSvcb),
        (vec![0; RECORD_LEN_MAX + 1], RecordError::TooLong),
        (rdata(1, &[(65_280, ticket), (65_280, ticket)]), RecordError::NotSvcb),
        (rdata(1, &[(65_281, b"x"), (65_280, ticket)]), RecordError::NotSvcb),
    ] {
        assert_eq!(TicketRecord::from_rdata(&bytes), Err(error));
    }
    let cut = rdata(1, &[(65_280, &ticket[..ticket.len() - 1])]);
    let refused = TicketRecord::from_rdata(&cut);
    assert!(matches!(refused, Err(RecordError::Ticket(_))), "{refused:?}");
}

#[test]
fn malformed_chains_are_refused() {
    let many = [0, 1, 7].repeat(11);
    for chain in [&b""[..], b"\0", b"\0\0", b"\0\x02x", b"\0\x01xy", &many] {
        assert_eq!(with_chain(chain), Err(RecordError::Chain), "{chain:?}");
    }
    assert_eq!(with_chain(b"\0\x01x").unwrap().chain(), Some(&[b"x".to_vec()][..]));
}

#[test]
fn no_record_that_is_cut_or_changed_in_one_byte_panics_or_passes_for_another_ticket() {
    let record = record();
    let bytes = record.to_rdata();
    let behind_ticket = 7 + record.ticket.as_bytes().len();
    for end in 0..bytes.len() {
        let read = TicketRecord::from_rdata(&bytes[..end]);
        // Without the chain it is a record too.
        assert_eq!(read.is_ok(), end == behind_ticket, "{end}");
    }
    for place in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[place] ^= change;
            if let Ok(read) = TicketRecord::from_rdata(&changed) {
                // Priority and the bytes of values; verification judges those.
                assert!(place < 2 || read != record, "{place}");
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The word of a table on requests.

use super::*;
use crate::signed_together::Proof;

fn request(session: u64, place: u64) -> Request {
    let number = first_number(session) + place;
    let (nonce, operation, proof) = ([0; 16], vec![1], Proof::default());
    Request { client: 1, number, nonce, operation, proof }
}

fn executed(table: &mut ClientTable<u64>, session: u64, place: u64) -> Vec<u64> {
    let it = request(session, place);
    assert!(table.is_new(&it), "session {session}, place {place}");
    table.note(&it, it.number, 8)
}

fn refused(table: &ClientTable<u64>, it: &Request) -> (RefusalReason, bool) {
    assert!(!table.is_new(it));
    match table.standing(it) {
        Standing::Refused(it) => (it.reason, it.may_have_run),
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_of_a_session_are_executed_in_any_order_and_each_once() {
    let mut table = ClientTable::default();
    for place in [5, 3, 32, 1, 34, 4] {
        executed(&mut table, 7, place);
        assert_eq!(
            table.standing(&request(7, place)),
            Standing::Answered(&request(7, place).number)
        );
    }
    assert!(table.is_new(&request(7, 33)));
    assert!(table.is_new(&Request { client: 2, ..request(7, 5) }));
}

#[test]
fn a_number_that_is_too_low_for_its_session_is_refused_by_name() {
    let mut table = ClientTable::default();
    let (low, high) = (3, 3 + IN_PROGRESS_MAX);
    executed(&mut table, 7, low);
    executed(&mut table, 7, high - 1);
    assert_eq!(table.standing(&request(7, low)), Standing::Answered(&request(7, low).number));
    assert!(table.is_new(&request(7, low + 1)));
    assert_eq!(executed(&mut table, 7, high), [request(7, low).number]);
    assert_eq!(refused(&table, &request(7, low)), (RefusalReason::NumberIsTooLow, true));
    assert_eq!(refused(&table, &request(7, low - 1)), (RefusalReason::NumberIsTooLow, true));
    assert!(table.is_new(&request(7, low + 1)));
}

#[test]
fn another_request_under_a_number_that_was_used_did_not_run_and_is_told_so() {
    let mut table = ClientTable::default();
    executed(&mut table, 7, 1);
    let other = Request { operation: vec![2], ..request(7, 1) };
    assert_eq!(refused(&table, &other), (RefusalReason::NumberIsUsed, false));
}

#[test]
fn the_session_that_was_used_least_recently_ends_and_what_it_ran_is_still_known() {
    let mut table = ClientTable::default();
    // The first one goes on while others come.
    for session in 1..20 {
        executed(&mut table, 0, session);
        executed(&mut table, session, 2);
    }
    assert!(table.is_new(&request(0, 20)));
    let open: Vec<u64> = (1..20).filter(|it| table.is_new(&request(*it, 3))).collect();
    assert_eq!(open, [13, 14, 15, 16, 17, 18, 19]);
    let over = RefusalReason::SessionIsOver;
    assert_eq!(refused(&table, &request(5, 2)), (over, true));
    assert_eq!(refused(&table, &request(5, 3)), (over, false));
    assert!(matches!(table.standing(&request(5, 3)), Standing::Refused(it) if it.newest == 19));
    assert!(table.is_new(&request(20, 0)));
}

#[test]
fn a_session_that_was_forgotten_never_opens_again_and_an_old_one_that_is_used_stays_open() {
    let mut table = ClientTable::default();
    let sessions = (OVER_MAX + 2 * SESSIONS_MAX) as u64;
    executed(&mut table, 0, 1);
    for session in 2..=sessions {
        executed(&mut table, 1, session);
        executed(&mut table, session, 1);
    }
    let over = RefusalReason::SessionIsOver;
    for forgotten in [0, 2] {
        assert_eq!(refused(&table, &request(forgotten, 2)), (over, true));
    }
    assert_eq!(refused(&table, &request(sessions - 8, 2)), (over, false));
    assert!(table.is_new(&request(1, sessions + 1)));
    assert_eq!(table.0[&1].over.len(), OVER_MAX);
}

#[test]
fn the_answers_of_a_client_are_bounded_and_its_last_one_is_kept() {
    let mut table = ClientTable::default();
    let large = (ANSWER_BYTES_MAX / 4) as usize;
    let mut dropped = Vec::new();
    for place in 1..=6 {
        let it = request(place / 3, place);
        dropped.extend(table.note(&it, place, large));
    }
    assert_eq!(dropped, [1, 2]);
    assert_eq!(refused(&table, &request(0, 2)), (RefusalReason::AnswerIsGone, true));
    assert_eq!(table.standing(&request(1, 3)), Standing::Answered(&3));
    let dropped = table.note(&request(9, 1), 9, 10 * large);
    assert_eq!(dropped, [3, 4, 5, 6]);
    assert_eq!(table.standing(&request(9, 1)), Standing::Answered(&9));
}

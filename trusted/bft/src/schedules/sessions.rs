// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sessions of a client: processes beside each other, and clocks that went back.

use smt_replica::{Refusal, RefusalReason, SESSIONS_MAX, first_number};

use super::*;

/// The end of the first client's last request, when all have heard each other.
fn end(cluster: &mut Cluster) -> Result<Vec<u8>, Refusal> {
    // A request that is not executed has no answer at once, when it is sent to the leader alone.
    (0..20).for_each(|_| cluster.clients[0].tick());
    cluster.settle(|_, _| true);
    cluster.ends.pop().unwrap().result
}

/// A process of the first client takes the place of the one before.
fn begin(cluster: &mut Cluster, session: u64) -> Result<Vec<u8>, Refusal> {
    let group = cluster.replicas[0].group.clone();
    cluster.clients[0] = Client::new(group, 1, client_key(1), 0);
    cluster.clients[0].begin_session([7; 16], session);
    end(cluster)
}

fn add(cluster: &mut Cluster, added: u64) -> Result<u64, Refusal> {
    cluster.submit(0, added);
    let answer = end(cluster)?;
    Ok(u64::from_be_bytes(answer.try_into().unwrap()))
}

#[test]
fn a_process_whose_clock_went_back_is_refused_by_name_and_begins_a_later_session() {
    let mut cluster = Cluster::new(3);
    for session in 101..=100 + SESSIONS_MAX as u64 {
        assert_eq!(begin(&mut cluster, session), Ok(Vec::new()));
        assert!(add(&mut cluster, 1).is_ok());
    }
    // The clock goes back: an older session, which no process had, takes the place of the oldest.
    assert_eq!(begin(&mut cluster, 50), Ok(Vec::new()));
    assert_eq!(add(&mut cluster, 1), Ok(9));
    // It goes back to what was the oldest session.
    let reason = RefusalReason::SessionIsOver;
    let refused = Refusal { reason, may_have_run: true, newest: 108 };
    assert_eq!(begin(&mut cluster, 101), Err(refused));
    assert_eq!(begin(&mut cluster, refused.newest + 1), Ok(Vec::new()));
    assert_eq!(add(&mut cluster, 1), Ok(10));
}

#[test]
fn a_request_in_a_session_that_is_over_did_not_run_and_its_client_is_told_so() {
    let mut cluster = Cluster::new(3);
    assert_eq!(begin(&mut cluster, 1), Ok(Vec::new()));
    assert_eq!(add(&mut cluster, 1), Ok(1));
    let group = cluster.replicas[0].group.clone();
    let idle = Client::new(group, 1, client_key(1), first_number(1) + 1);
    for session in 2..=1 + SESSIONS_MAX as u64 {
        assert_eq!(begin(&mut cluster, session), Ok(Vec::new()));
    }
    cluster.clients[0] = idle;
    let reason = RefusalReason::SessionIsOver;
    let refused = Refusal { reason, may_have_run: false, newest: 9 };
    assert_eq!(add(&mut cluster, 1), Err(refused));
    assert_eq!(begin(&mut cluster, 10), Ok(Vec::new()));
    assert_eq!(add(&mut cluster, 1), Ok(2));
}

#[test]
fn two_processes_that_began_at_one_moment_have_two_sessions() {
    let mut cluster = Cluster::new(3);
    assert_eq!(begin(&mut cluster, 5), Ok(Vec::new()));
    let group = cluster.replicas[0].group.clone();
    cluster.clients[0] = Client::new(group, 1, client_key(1), 0);
    cluster.clients[0].begin_session([8; 16], 5);
    let reason = RefusalReason::NumberIsUsed;
    assert_eq!(end(&mut cluster), Err(Refusal { reason, may_have_run: false, newest: 5 }));
}

#[test]
fn several_requests_of_a_client_are_ordered_together_and_each_has_its_answer() {
    let mut cluster = Cluster::new(3);
    (0..6).for_each(|_| cluster.submit(0, 1));
    cluster.settle(|_, _| true);
    let mut sums: Vec<Vec<u8>> = cluster.ends.drain(..).filter_map(|it| it.result.ok()).collect();
    sums.sort();
    let expected: Vec<Vec<u8>> = (1..=6_u64).map(|it| it.to_be_bytes().to_vec()).collect();
    assert_eq!(sums, expected);
    assert!(cluster.replicas[0].metrics().executed < 6, "some were a batch");
}

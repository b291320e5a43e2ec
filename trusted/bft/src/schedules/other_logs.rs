// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A checkpoint beside a view whose log has other batches at that place. Two of five lie.

use std::sync::Arc;

use smt_replica::{Request, first_number};

use super::Cluster;
use super::steps::{
    change_of, hears, is_answered, kept, says, second_request, state_of, statements_of, wants,
};
use crate::message::{Message, State, Statement};
use smt_replica::sim::client_key;

/// A batch of one request that nobody has sent.
fn batch(number: u64) -> crate::message::Batch {
    let operation = ([0; 16], 1_u64.to_be_bytes().to_vec());
    Arc::new(vec![Request::sign(&client_key(9), 9, first_number(1) + number, operation)])
}

/// The liars 1 and 2 open view 1 with 0, who enters it and wants view 2. 1 orders five batches
/// there, and 2 commits to four. View 2 begins with those, and nobody enters it.
fn four_batches_of_view_one() -> (Cluster, [Vec<Vec<u8>>; 2]) {
    let mut cluster = Cluster::new(5);
    let mut one = vec![wants(&mut cluster, 1, 1)];
    let mut two = vec![wants(&mut cluster, 2, 1)];
    cluster.replicas[0].want(1);
    [&one, &two].into_iter().for_each(|it| hears(&mut cluster, 0, it));
    let votes = [0, 1, 2].map(|it| change_of(&cluster, 0, it, 1)).to_vec();
    one.push(says(&mut cluster, 1, &Statement::NewView { view: 1, votes }).1);
    hears(&mut cluster, 0, &one);
    let opening = cluster.replicas[0].views[&1].digest;
    let enter = Statement::Enter { view: 1, opening };
    one.push(says(&mut cluster, 1, &enter).1);
    two.push(says(&mut cluster, 2, &enter).1);
    [&one, &two].into_iter().for_each(|it| hears(&mut cluster, 0, it));
    cluster.replicas[0].want(2);
    for sequence in 1..=5 {
        let prepare = Statement::Prepare { view: 1, sequence, batch: batch(sequence) };
        one.push(says(&mut cluster, 1, &prepare).1);
    }
    two.push(says(&mut cluster, 2, &Statement::Commit { view: 1, sequence: 4 }).1);
    two.push(wants(&mut cluster, 2, 2));
    cluster.replicas[3].want(2);
    cluster.settle(|from, to| [from, to].iter().all(|it| [0, 3].contains(it)));
    for who in [0, 3] {
        [&one, &two].into_iter().for_each(|it| hears(&mut cluster, who, it));
    }
    let votes = [0, 2, 3].map(|it| change_of(&cluster, 3, it, 2)).to_vec();
    two.push(says(&mut cluster, 2, &Statement::NewView { view: 2, votes }).1);
    (cluster, [one, two])
}

// The hash of the checkpoint, which was that of view 3, stood for the log of view 1 at that place.
// 4 had another beginning of view 2, and took whoever entered it for a liar.
#[test]
fn a_checkpoint_of_a_later_view_does_not_tell_the_log_of_an_earlier_one() {
    let (mut cluster, [mut one, mut two]) = four_batches_of_view_one();
    // View 3 begins without them, and four others are committed there.
    [0, 3, 4].into_iter().for_each(|who| cluster.replicas[who].want(3));
    let four = statements_of(&mut cluster, 4);
    [0, 3].into_iter().for_each(|who| hears(&mut cluster, who, &four));
    let may = |from: usize, to: usize| [from, to].iter().all(|it| [0, 3].contains(it));
    cluster.tick(&[0, 3], 20);
    assert_eq!([0, 3].map(|it| cluster.replicas[it].metrics().view), [3, 3]);
    for who in [0, 3] {
        hears(&mut cluster, who, &two);
    }
    assert_eq!([0, 3].map(|it| cluster.replicas[it].views[&2].opening.start), [4, 4]);
    let opening = cluster.replicas[0].views[&3].digest;
    one.push(wants(&mut cluster, 1, 3));
    one.push(says(&mut cluster, 1, &Statement::Enter { view: 3, opening }).1);
    for sequence in 1..=4 {
        one.push(says(&mut cluster, 1, &Statement::Commit { view: 3, sequence }).1);
        for who in [0, 3] {
            hears(&mut cluster, who, &one);
        }
        cluster.submit(0, 1);
        (0..20).for_each(|_| cluster.clients[0].tick());
        cluster.settle(may);
        cluster.tick(&[0, 3], 2);
    }
    assert_eq!([0, 3].map(|it| cluster.replicas[it].metrics().executed), [4, 4]);
    let (checkpoint, _, _) = cluster.replicas[0].ledger.stable_state().unwrap();
    let checkpoint = cluster.replicas[0].ledger.checkpoint_after(0).unwrap_or(checkpoint);
    one.push(says(&mut cluster, 1, &Statement::Checkpoint(checkpoint)).1);
    for who in [0, 3] {
        hears(&mut cluster, who, &one);
    }
    assert_eq!(cluster.replicas[0].metrics().stable, 4);
    // The liars show 4 view 1 beside the checkpoint.
    let State { proof, snapshot, .. } = state_of(&cluster, 0);
    let view = &cluster.replicas[0].views[&1];
    let (opening, enters) = (view.opening.clone(), view.enters.values().cloned().collect());
    let (checkpoints, log, streams) = <_>::default();
    let state = State { proof, checkpoints, snapshot, log, opening, enters, streams };
    cluster.replicas[4].receive(&Message::State(Box::new(state)).encode());
    assert_eq!(cluster.replicas[4].metrics().states, 1);
    let digest = cluster.replicas[0].views[&2].digest;
    two.push(says(&mut cluster, 2, &Statement::Enter { view: 2, opening: digest }).1);
    for device in [0, 3] {
        let said = kept(&cluster, 0, device, 0);
        hears(&mut cluster, 4, &said);
    }
    for who in [0, 3, 4] {
        [&one, &two].into_iter().for_each(|it| hears(&mut cluster, who, it));
    }
    assert!(cluster.replicas[4].views[&2].digest == digest);
    let faulty = [0, 3, 4].map(|it| cluster.replicas[it].streams[&(2, 1)].track.is_faulty);
    assert_eq!(faulty, [false; 3]);
    second_request(&mut cluster);
    assert!(is_answered(&mut cluster, &[0, 3, 4]));
}

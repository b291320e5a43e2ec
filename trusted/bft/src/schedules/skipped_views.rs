// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Views that a correct replica has skipped, and that others know. Two of five lie, or one of
//! three.

use smt_replica::{Request, first_number};

use super::Cluster;
use super::steps::{
    change_of, hears, is_answered, kept, one_opens_view_one, open_view_four, pad, request, says,
    second_request, small, small_batches, stands, state_of, statements_of, wants,
};
use crate::message::{Message, State, Statement};
use crate::replica::Output;
use smt_replica::sim::client_key;

// 0 took a NEW-VIEW that it could not judge yet as one of the past, and then a liar's ENTER that
// was faulty to others. They heard no more of 0, whose next view had the liar's vote.
#[test]
fn a_new_view_of_the_past_is_judged_when_its_votes_are_here() {
    let mut cluster = Cluster::new(5);
    let ([bytes, two, three], of_one) = one_opens_view_one(&mut cluster);
    let four = wants(&mut cluster, 3, 4);
    open_view_four(&mut cluster, [bytes, three.clone(), four]);
    let lie = says(&mut cluster, 2, &Statement::Enter { view: 1, opening: [9; 32] }).1;
    let five = [2, 3].map(|who| wants(&mut cluster, who, 5));
    let of_two = [two, lie, five[0].clone()];
    hears(&mut cluster, 0, &of_one);
    hears(&mut cluster, 0, &of_two);
    hears(&mut cluster, 0, &five[1..]);
    for who in [1, 4] {
        hears(&mut cluster, who, &of_two[..1]);
        hears(&mut cluster, who, &of_one);
        hears(&mut cluster, who, &of_two);
    }
    let faulty = [0, 1, 4].map(|it| cluster.replicas[it].streams[&(2, 1)].track.is_faulty);
    assert_eq!(faulty, [true; 3]);
    cluster.tick(&[0], 400);
    assert!(is_answered(&mut cluster, &[0, 1, 4]));
}

// 0 took a liar's ENTER of a view of the past that it had not heard of, which was faulty to others.
#[test]
fn an_enter_of_a_view_of_the_past_that_comes_before_its_new_view_is_judged_by_all_alike() {
    let mut cluster = Cluster::new(5);
    let ([bytes, two, three], of_one) = one_opens_view_one(&mut cluster);
    let four = wants(&mut cluster, 3, 4);
    open_view_four(&mut cluster, [bytes, three.clone(), four]);
    let lie = says(&mut cluster, 2, &Statement::Enter { view: 1, opening: [9; 32] }).1;
    let five = [2, 3].map(|who| wants(&mut cluster, who, 5));
    let of_two = [two, lie, five[0].clone()];
    hears(&mut cluster, 0, &of_two);
    hears(&mut cluster, 0, &five[1..]);
    cluster.tick(&[0], 400);
    for who in [1, 4] {
        hears(&mut cluster, who, &of_two[..1]);
        hears(&mut cluster, who, &of_one);
        hears(&mut cluster, who, &of_two);
    }
    hears(&mut cluster, 0, &of_one);
    let faulty = [0, 1, 4].map(|it| cluster.replicas[it].streams[&(2, 1)].track.is_faulty);
    assert_eq!(faulty, [true; 3]);
    assert!(is_answered(&mut cluster, &[0, 1, 4]));
}

/// 1 and 2 want a view, and hear each other until they have entered it.
fn one_and_two_go_to_view(cluster: &mut Cluster, view: u64) {
    [1, 2].into_iter().for_each(|who| cluster.replicas[who].want(view));
    cluster.tick(&[1, 2], 2);
}

// One that had forgotten the view took the second statement for one of the past. It was faulty to
// the others, who took no later view that began with a vote of the liar.
#[test]
fn a_leader_that_opens_a_view_again_is_faulty_also_to_those_who_have_forgotten_the_view() {
    let mut cluster = Cluster::new(3);
    let three = wants(&mut cluster, 0, 3);
    one_and_two_go_to_view(&mut cluster, 3);
    [1, 2].into_iter().for_each(|it| hears(&mut cluster, it, std::slice::from_ref(&three)));
    let votes =
        |cluster: &Cluster, other| [0, other].map(|it| change_of(cluster, 1, it, 3)).to_vec();
    for (other, is_faulty) in [(1, false), (2, true)] {
        let votes = votes(&cluster, other);
        let said = says(&mut cluster, 0, &Statement::NewView { view: 3, votes }).1;
        [1, 2].into_iter().for_each(|it| hears(&mut cluster, it, std::slice::from_ref(&said)));
        let faulty = [1, 2].map(|it| cluster.replicas[it].streams[&(0, 1)].track.is_faulty);
        assert_eq!(faulty, [is_faulty; 2], "NEW-VIEW with the vote of {other}");
        cluster.tick(&[1, 2], 2);
        one_and_two_go_to_view(&mut cluster, 4);
        assert_eq!([1, 2].map(|it| cluster.replicas[it].metrics().view), [4; 2]);
        // As after 256 later views.
        cluster.replicas[2].views.remove(&3);
    }
}

/// 2 enters view 1 as it has begun, and continues to a checkpoint of its stream, which 3 states.
fn go_on_to_a_checkpoint(cluster: &mut Cluster, two: Vec<u8>, three: [Vec<u8>; 2]) {
    let opening = cluster.replicas[1].views[&1].digest;
    let enter = says(cluster, 2, &Statement::Enter { view: 1, opening }).1;
    let mut of_two = vec![two, enter];
    pad(cluster, 2, &mut of_two);
    hears(cluster, 1, &of_two);
    let place = stands(cluster, 1, (2, 1));
    let stated = [2, 3].map(|who| says(cluster, who, &place).1);
    hears(cluster, 1, &three);
    hears(cluster, 1, &stated);
}

// 0 had taken the leader's PREPARE of a view that it did not know. It then learned of the view as
// of one without batches, and the leader's next PREPARE was faulty.
#[test]
fn a_state_of_an_earlier_view_that_was_skipped_is_refused() {
    let mut cluster = small_batches(12);
    let ([bytes, two, three], of_one) = one_opens_view_one(&mut cluster);
    let four = wants(&mut cluster, 3, 4);
    open_view_four(&mut cluster, [bytes, three.clone(), four.clone()]);
    hears(&mut cluster, 0, &of_one);
    go_on_to_a_checkpoint(&mut cluster, two, [three, four]);
    let state = state_of(&cluster, 1);
    assert_eq!((state.opening.view, state.streams.len()), (1, 1));
    cluster.replicas[0].receive(&Message::State(Box::new(state)).encode());
    assert_eq!(cluster.replicas[0].metrics().states, 0);
    // 1 orders another request in view 1.
    cluster.submit(0, 1);
    let Output::Node(_, other) = cluster.clients[0].outputs().remove(0) else { panic!("one") };
    cluster.replicas[1].receive(&other);
    assert_eq!(cluster.replicas[1].views[&1].end(), 2);
    assert!(is_answered(&mut cluster, &[0, 1, 4]));
    assert!(!cluster.replicas[0].streams[&(1, 1)].track.is_faulty);
}

// The others could not state where its stream stood, and it had no statement left to want a view
// with.
#[test]
fn a_leader_of_a_view_that_others_have_skipped_goes_on_though_it_has_ordered_much() {
    for orders in [10, 100] {
        let mut cluster = small_batches(256);
        let ([bytes, _, three], mut of_one) = one_opens_view_one(&mut cluster);
        let four = wants(&mut cluster, 3, 4);
        open_view_four(&mut cluster, [bytes, three, four]);
        for number in 1..=orders {
            let operation = ([0; 16], 1_u64.to_be_bytes().to_vec());
            let number = first_number(number % 8) + number / 8;
            let request = Request::sign(&client_key(9), 9, number, operation);
            cluster.replicas[1].receive(&Message::Request(request).encode());
        }
        of_one.extend(statements_of(&mut cluster, 1));
        [0, 4].into_iter().for_each(|it| hears(&mut cluster, it, &of_one));
        assert!(is_answered(&mut cluster, &[0, 1, 4]), "{orders}");
    }
}

/// All that 3 and 4 have said: they hear each other.
struct Said {
    three: Vec<Vec<u8>>,
    four: Vec<Vec<u8>>,
}

impl Said {
    fn exchange(&mut self, cluster: &mut Cluster) {
        for (from, to, all) in [(3, 4, &mut self.three), (4, 3, &mut self.four)] {
            let said = statements_of(cluster, from);
            hears(cluster, to, &said);
            all.extend(said);
        }
    }
}

/// View 1 is opened on the votes of the liar 1, and of 3 and 4, who enter it.
fn three_and_four_enter_view_one(cluster: &mut Cluster, one: &mut Vec<Vec<u8>>) -> Said {
    let mut said = Said { three: Vec::new(), four: Vec::new() };
    [3, 4].into_iter().for_each(|it| hears(cluster, it, one));
    while [3, 4].iter().any(|it| cluster.replicas[*it].own_track().promised < 1) {
        for who in [3, 4] {
            if cluster.replicas[who].own_track().promised < 1 {
                cluster.replicas[who].tick();
            }
        }
        said.exchange(cluster);
    }
    said.exchange(cluster);
    let votes = [1, 3, 4].map(|it| change_of(cluster, 3, it, 1)).to_vec();
    one.push(says(cluster, 1, &Statement::NewView { view: 1, votes }).1);
    [3, 4].into_iter().for_each(|it| hears(cluster, it, &one[3..]));
    said.exchange(cluster);
    assert_eq!([3, 4].map(|it| cluster.replicas[it].own_track().at), [Some((1, 0)); 2]);
    said
}

/// Ticks a replica until it wants a view, and returns what it says.
fn tick_to_promise(cluster: &mut Cluster, who: usize, view: u64) -> Vec<Vec<u8>> {
    let mut said = Vec::new();
    for _ in 0..6000 {
        if cluster.replicas[who].own_track().promised < view {
            cluster.replicas[who].tick();
            said.extend(statements_of(cluster, who));
        }
    }
    said
}

/// A state of view 2, which 4 alone has entered, with two ENTERs that liars attest too late.
fn state_of_view_two(cluster: &mut Cluster) -> State {
    let view = &cluster.replicas[4].views[&2];
    let (opening, digest, enter) = (view.opening.clone(), view.digest, view.enters[&4].clone());
    let statement = Statement::Enter { view: 2, opening: digest };
    let forged = [1, 2].map(|who| says(cluster, who, &statement).0);
    let enters = [enter].into_iter().chain(forged).collect();
    let (proof, checkpoints, snapshot, streams, log) = <_>::default();
    State { proof, checkpoints, snapshot, log, opening, enters, streams }
}

// 0 skipped view 1 with the state. View 3 began with the log of view 1, and 0 waited for ever.
#[test]
fn a_view_that_was_skipped_with_a_state_is_learned_of_when_a_later_one_begins_with_its_log() {
    let mut cluster = Cluster::new(5);
    let (bytes, _) = second_request(&mut cluster);
    [0, 3, 4].into_iter().for_each(|it| cluster.replicas[it].receive(&bytes));
    let mut one = [1, 2, 3].map(|view| wants(&mut cluster, 1, view)).to_vec();
    let mut two = [2, 3].map(|view| wants(&mut cluster, 2, view)).to_vec();
    let mut said = three_and_four_enter_view_one(&mut cluster, &mut one);
    // 4 enters view 2 alone.
    hears(&mut cluster, 4, &two);
    said.four.extend(tick_to_promise(&mut cluster, 4, 2));
    let votes = [1, 2, 4].map(|it| change_of(&cluster, 4, it, 2)).to_vec();
    two.push(says(&mut cluster, 2, &Statement::NewView { view: 2, votes }).1);
    hears(&mut cluster, 4, &two[2..]);
    said.four.extend(statements_of(&mut cluster, 4));
    assert_eq!(cluster.replicas[4].own_track().at, Some((2, 0)));
    // 0 wants view 3, from view 0, and gets the state of view 2.
    hears(&mut cluster, 0, &one[..3]);
    hears(&mut cluster, 0, &two[..2]);
    let of_zero = tick_to_promise(&mut cluster, 0, 3);
    let state = state_of_view_two(&mut cluster);
    cluster.replicas[0].receive(&Message::State(Box::new(state)).encode());
    assert_eq!(cluster.replicas[0].metrics().states, 1);
    hears(&mut cluster, 0, &one);
    // 3 opens view 3 on the votes of 0, 1 and its own.
    hears(&mut cluster, 3, &of_zero);
    for _ in 0..6000 {
        if !cluster.replicas[3].views.contains_key(&3) {
            cluster.replicas[3].tick();
            said.three.extend(statements_of(&mut cluster, 3));
        }
    }
    assert!(cluster.replicas[3].views.contains_key(&3));
    [0, 3].into_iter().for_each(|it| hears(&mut cluster, it, &said.four));
    [0, 4].into_iter().for_each(|it| hears(&mut cluster, it, &said.three));
    assert!(is_answered(&mut cluster, &[0, 3, 4]));
}

// 2 took what 1 said in view 1 as statements of a view that was never opened, and did not open the
// view when its votes came. The two answered nothing more.
#[test]
fn a_leader_that_is_followed_from_behind_its_new_view_waits_until_the_view_is_opened() {
    let mut cluster = small(3);
    for _ in 0..8 {
        assert!(request(&mut cluster, &|_, _| true, &[]));
    }
    [1, 2].into_iter().for_each(|view| cluster.replicas[2].want(view));
    let away = |from: usize, to: usize| from != 2 && to != 2;
    [0, 1].into_iter().for_each(|who| cluster.replicas[who].want(1));
    let of_zero = kept(&cluster, 0, 0, 10);
    cluster.settle(away);
    assert!(request(&mut cluster, &away, &[0, 1]));
    // 0 gives 2 a state of view 0, in which 1 has opened view 1, and has not entered it.
    let State { proof, snapshot, streams, .. } = state_of(&cluster, 1);
    let streams: Vec<_> = streams.into_iter().filter(|it| it.device == 1).collect();
    assert_eq!((streams[0].track.counter, streams[0].track.at), (12, Some((0, 8))));
    assert!(streams[0].track.opened.contains_key(&1));
    let opening = cluster.replicas[1].views[&0].opening.clone();
    let (checkpoints, log, enters) = <_>::default();
    let state = State { proof, checkpoints, snapshot, log, opening, enters, streams };
    cluster.replicas[2].receive(&Message::State(Box::new(state)).encode());
    assert_eq!(cluster.replicas[2].metrics().states, 1);
    // It hears 1 before it hears 0.
    let of_one = kept(&cluster, 1, 1, 12);
    hears(&mut cluster, 2, &of_one);
    hears(&mut cluster, 2, &of_zero);
    assert!(request(&mut cluster, &away, &[0, 1]));
    let of_one = kept(&cluster, 1, 1, 12);
    hears(&mut cluster, 2, &of_one);
    assert!(!cluster.replicas[2].streams[&(1, 1)].track.is_faulty);
    second_request(&mut cluster);
    assert!(is_answered(&mut cluster, &[1, 2]));
}

// Others waited for the NEW-VIEW for ever, and one that had skipped the view went on with the
// liar's votes.
#[test]
fn a_leader_that_enters_its_view_without_having_opened_it_is_faulty_to_all_alike() {
    let mut cluster = Cluster::new(5);
    let enter = says(&mut cluster, 2, &Statement::Enter { view: 2, opening: [9; 32] }).1;
    cluster.replicas[1].skipped_to = 3;
    [0, 1, 4].into_iter().for_each(|it| hears(&mut cluster, it, std::slice::from_ref(&enter)));
    let faulty = [0, 1, 4].map(|it| cluster.replicas[it].streams[&(2, 1)].track.is_faulty);
    assert_eq!(faulty, [true; 3]);
}

// 1 had the view of a state already. It then took what the liar 3 said in a view that the liar 2
// never opened, for which the others waited, and went on with votes that they never heard.
#[test]
fn a_state_of_a_view_that_is_known_skips_no_view() {
    let mut cluster = Cluster::new(5);
    let correct = |from: usize, to: usize| ![2, 3].contains(&from) && ![2, 3].contains(&to);
    [0, 1, 4].into_iter().for_each(|who| cluster.replicas[who].want(4));
    while cluster.replicas[1].metrics().stable == 0 {
        assert!(request(&mut cluster, &correct, &[0, 1, 4]));
    }
    let enter = says(&mut cluster, 3, &Statement::Enter { view: 2, opening: [9; 32] }).1;
    [0, 1, 4].into_iter().for_each(|it| hears(&mut cluster, it, std::slice::from_ref(&enter)));
    let state = state_of(&cluster, 0);
    assert_eq!(state.opening.view, 4);
    // As if the others' CHECKPOINTs were still on their way.
    cluster.replicas[1].ledger.stable = 0;
    cluster.replicas[1].receive(&Message::State(Box::new(state)).encode());
    assert_eq!(cluster.replicas[1].metrics().states, 1);
    let counters = [0, 1, 4].map(|it| cluster.replicas[it].streams[&(3, 1)].track.counter);
    assert_eq!(counters, [0; 3]);
}

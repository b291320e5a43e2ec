// SPDX-License-Identifier: Apache-2.0 OR MIT

use super::*;
use crate::net::packet::Protocol;

struct Nothing;

impl LinkRule for Nothing {
    fn pass(&mut self, _: Time, packet: Packet, out: &mut Vec<(Packet, u64)>) {
        out.push((packet, 0));
    }
}

fn adversary(only: Move) -> Adversary<Nothing> {
    let random = Random::new(1);
    let mut adversary = Adversary::new(Nothing, random, HostId(9), Rc::default(), Rc::default());
    adversary.moves = vec![(only, 1_000_000)];
    adversary
}

/// The packets that an attacker who always makes this move lets through, of DATA packets.
fn passed(only: Move) -> Vec<Packet> {
    passed_by(adversary(only))
}

/// The packets that this attacker lets through, of DATA packets all of time 0.
fn passed_by(mut adversary: Adversary<Nothing>) -> Vec<Packet> {
    let mut out = Vec::new();
    for number in 0..100u8 {
        let mut bytes = vec![number; 200];
        bytes[..12].copy_from_slice(&[1, DATA, 0, 0, 0xB0, 0, 0, 0, 0, 0, 0, 0]);
        put(&mut bytes, OFFSET, &1_000u32.to_be_bytes());
        let packet = Packet {
            from: HostId(0),
            to: HostId(1),
            bytes: Bytes::from(bytes),
            priority: 0,
            is_marked: false,
            is_trimmed: false,
            entropy: 0,
            protocol: Protocol::Smt,
        };
        adversary.pass(Time::default(), packet, &mut out);
    }
    out.into_iter().map(|(packet, _)| packet).collect()
}

#[test]
fn it_reflects_repeats_and_drops() {
    assert!(passed(Move::Reflect).iter().any(|p| p.to == HostId(0)));
    assert_eq!(passed(Move::Replay).len(), 200);
    assert!(passed(Move::Drop).is_empty());
}

#[test]
fn once_it_has_left_all_packets_pass() {
    let stays = Time::from_nanos(1);
    assert!(passed_by(adversary(Move::Drop).until(stays)).is_empty());
    let has_left = adversary(Move::Drop).until(Time::default());
    assert_eq!(passed_by(has_left).len(), 100);
}

#[test]
fn it_changes_headers_and_moves_contents() {
    for change in [Move::Mutate, Move::Retarget, Move::Splice, Move::ClaimHuge] {
        let all = passed(change);
        let is_odd = |p: &Packet| {
            let content = p.bytes[50];
            p.bytes[36..].iter().any(|b| *b != content)
                || p.bytes[12..28].iter().any(|b| *b != content)
        };
        let lengths = all.iter().filter(|p| p.bytes[28..32] != [p.bytes[50]; 4]);
        let odd = all.iter().filter(|p| is_odd(p)).count() + lengths.count();
        assert!(all.len() == 200 && odd > 20, "{change:?}: {odd}");
    }
}

#[test]
fn it_claims_that_packets_were_trimmed() {
    let all = passed(Move::Trim);
    let trimmed = all.iter().filter(|p| p.is_trimmed && p.bytes.len() == 36);
    assert_eq!((all.len(), trimmed.count()), (200, 100));
}

#[test]
fn it_cuts_messages_at_a_record() {
    let all = passed(Move::CutMessage);
    let is_cut = |p: &&Packet| u32::from_be_bytes(p.bytes[LENGTH].try_into().unwrap()) >= 1_142;
    assert!(all.len() < 100 && all.iter().filter(is_cut).count() == all.len());
}

#[test]
fn copies_and_versions_that_nobody_speaks_come_in_a_bystander_s_name() {
    let all = passed(Move::Spoof);
    let spoofed: Vec<_> = all.iter().filter(|p| p.from == HostId(9)).collect();
    let odd = spoofed.iter().filter(|p| p.bytes[0] != 1).count();
    assert!(odd > 10 && spoofed.len() - odd > 10, "{odd} of {}", spoofed.len());
}

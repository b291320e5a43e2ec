// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rules of attestation, each by a host that breaks it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_attestation::{
    Algorithm, Attestation, Ballot, DeviceId, Epoch, Group, GroupSecret, Kernel, Kind, Member,
    Misuse, Progress, Refusal, Start, Stream, StreamId,
};

type Device = Kernel<4, 4, 4>;

const STREAM: StreamId = StreamId(7);

fn id(device: u32) -> DeviceId {
    DeviceId(device)
}

fn start(device: u32, epoch: u64) -> Start {
    Start { device: id(device), epoch: Epoch(epoch), nonce: [epoch as u8; 16] }
}

/// A device of the group of these members, all formed in epoch 1.
fn device(members: &[u32], own: Start) -> Device {
    let mut device = Device::start(own);
    join(&mut device, STREAM, members);
    device
}

/// The stream of the group, to change it and to look at it.
trait OfGroup {
    fn group_mut(&mut self) -> &mut Stream<4, 4>;
    fn group(&self) -> &Stream<4, 4>;
}

impl OfGroup for Device {
    fn group_mut(&mut self) -> &mut Stream<4, 4> {
        self.stream_mut(STREAM).unwrap()
    }

    fn group(&self) -> &Stream<4, 4> {
        self.stream(STREAM).unwrap()
    }
}

fn join(device: &mut Device, stream: StreamId, members: &[u32]) {
    let members: Vec<_> =
        members.iter().map(|&it| Member { device: id(it), epoch: Epoch(1) }).collect();
    let quorum = if members.len() > 2 { 2 } else { 1 };
    let group = Group { stream, algorithm: Algorithm::HmacSha256, quorum, members: &members };
    device.open(&GroupSecret::new([9; 32]), &group).unwrap();
}

fn three() -> [Device; 3] {
    [1, 2, 3].map(|it| device(&[1, 2, 3], start(it, 1)))
}

fn altered(attestation: Attestation, offset: usize) -> Attestation {
    let mut bytes = attestation.0;
    bytes[offset] ^= 1;
    Attestation(bytes)
}

mod one_stream_per_group {
    use super::*;

    /// The liar of the paper's sessions: one shared key and one counter for each peer.
    #[test]
    fn two_stories_under_one_counter_pass_through_pairwise_sessions() {
        let mut liar = Device::start(start(1, 1));
        join(&mut liar, StreamId(12), &[1, 2]);
        join(&mut liar, StreamId(13), &[1, 3]);
        let mut two = Device::start(start(2, 1));
        join(&mut two, StreamId(12), &[1, 2]);
        let mut three = Device::start(start(3, 1));
        join(&mut three, StreamId(13), &[1, 3]);
        let to_two = liar.stream_mut(StreamId(12)).unwrap().attest(b"pay A").unwrap();
        let to_three = liar.stream_mut(StreamId(13)).unwrap().attest(b"pay B").unwrap();
        // The reason for the rule: both are taken as the liar's first statement.
        assert_eq!(
            two.stream_mut(StreamId(12)).unwrap().accept(&to_two, b"pay A").unwrap().counter,
            1
        );
        assert_eq!(
            three.stream_mut(StreamId(13)).unwrap().accept(&to_three, b"pay B").unwrap().counter,
            1
        );
    }

    #[test]
    fn two_stories_in_the_groups_stream_are_caught() {
        let [mut liar, mut two, mut three] = three();
        let to_two = liar.group_mut().attest(b"pay A").unwrap();
        let to_three = liar.group_mut().attest(b"pay B").unwrap();
        assert!(two.group_mut().accept(&to_two, b"pay A").is_ok());
        assert_eq!(
            three.group_mut().accept(&to_three, b"pay B"),
            Err(Refusal::Gap { expected: 1 })
        );
        // The first story is all that gets the liar on.
        assert!(three.group_mut().accept(&to_two, b"pay A").is_ok());
        assert!(three.group_mut().accept(&to_three, b"pay B").is_ok());
    }

    #[test]
    fn a_pairwise_session_under_the_groups_number_and_secret_is_refused() {
        let [mut liar, mut two, mut three] = three();
        let mut pairwise = device(&[1, 3], start(1, 1));
        let to_two = liar.group_mut().attest(b"pay A").unwrap();
        let to_three = pairwise.group_mut().attest(b"pay B").unwrap();
        assert!(two.group_mut().accept(&to_two, b"pay A").is_ok());
        assert_eq!(three.group_mut().accept(&to_three, b"pay B"), Err(Refusal::Mac));
    }

    #[test]
    fn a_group_of_other_members_or_other_epochs_has_another_key() {
        let [mut one, ..] = three();
        let attestation = one.group_mut().attest(b"body").unwrap();
        let mut three = device(&[1, 3, 4], start(3, 1));
        assert_eq!(three.group_mut().accept(&attestation, b"body"), Err(Refusal::Mac));
        let mut three = Device::start(start(3, 1));
        let members = [(1, 2), (2, 1), (3, 1)];
        let members = members.map(|(it, epoch)| Member { device: id(it), epoch: Epoch(epoch) });
        let algorithm = Algorithm::HmacSha256;
        let group = Group { stream: STREAM, algorithm, quorum: 2, members: &members };
        three.open(&GroupSecret::new([9; 32]), &group).unwrap();
        assert_eq!(three.group_mut().accept(&attestation, b"body"), Err(Refusal::Mac));
    }

    #[test]
    fn a_stream_is_opened_once() {
        let [mut one, ..] = three();
        one.group_mut().attest(b"first").unwrap();
        let members = [1, 2].map(|it| Member { device: id(it), epoch: Epoch(1) });
        let algorithm = Algorithm::HmacSha256;
        let group = Group { stream: STREAM, algorithm, quorum: 1, members: &members };
        assert_eq!(one.open(&GroupSecret::new([9; 32]), &group), Err(Misuse::StreamExists));
        assert_eq!(one.group().sent(), 1);
    }

    #[test]
    fn one_attestation_serves_all_members() {
        let [mut one, mut two, mut three] = three();
        let attestation = one.group_mut().attest(b"to all").unwrap();
        assert_eq!(
            two.group_mut().accept(&attestation, b"to all"),
            three.group_mut().accept(&attestation, b"to all")
        );
    }
}

mod the_mac {
    use super::*;

    #[test]
    fn a_change_of_any_byte_is_refused_and_moves_no_counter() {
        let [mut one, mut two, _] = three();
        let attestation = one.group_mut().attest(b"body").unwrap();
        for offset in 0..64 {
            assert!(
                two.stream_mut(STREAM)
                    .unwrap()
                    .accept(&altered(attestation, offset), b"body")
                    .is_err(),
                "byte {offset}"
            );
            assert_eq!(
                two.group().position(id(1)).unwrap().progress,
                Progress::Taken(0),
                "byte {offset}"
            );
        }
        for body in [&b"bodY"[..], b"bod", b"body ", b""] {
            assert!(two.group_mut().accept(&attestation, body).is_err());
        }
        assert!(two.group_mut().accept(&attestation, b"body").is_ok());
    }

    #[test]
    fn a_forged_counter_neither_blocks_nor_skips() {
        let [mut one, mut two, _] = three();
        let first = one.group_mut().attest(b"1").unwrap();
        for counter in [1, 2, u64::MAX] {
            let mut header = first.claim().unwrap();
            header.counter = counter;
            let forged = Attestation::new(&header.encode(), &[0; 32]);
            assert_eq!(two.group_mut().accept(&forged, b"1"), Err(Refusal::Mac));
        }
        assert!(two.group_mut().accept(&first, b"1").is_ok());
    }

    #[test]
    fn the_length_counts() {
        let [mut one, two, _] = three();
        let attestation = one.group_mut().attest(b"ab").unwrap();
        assert_eq!(attestation.claim().unwrap().length, 2);
        assert_eq!(two.group().check(&attestation, b"a"), Err(Refusal::Malformed));
    }

    #[test]
    fn another_stream_with_the_same_secret_has_another_key() {
        let [mut one, ..] = three();
        let attestation = one.group_mut().attest(b"body").unwrap();
        let mut header = attestation.claim().unwrap();
        header.stream = StreamId(8);
        let moved = Attestation::new(&header.encode(), &attestation.mac());
        let mut two = Device::start(start(2, 1));
        join(&mut two, StreamId(8), &[1, 2, 3]);
        assert_eq!(two.stream_mut(StreamId(8)).unwrap().accept(&moved, b"body"), Err(Refusal::Mac));
    }
}

mod receipt {
    use super::*;

    #[test]
    fn messages_are_taken_in_order_and_once() {
        let [mut one, mut two, _] = three();
        let sent: Vec<_> = (0..3u8).map(|body| one.group_mut().attest(&[body]).unwrap()).collect();
        assert_eq!(two.group_mut().accept(&sent[1], &[1]), Err(Refusal::Gap { expected: 1 }));
        assert!(two.group_mut().accept(&sent[0], &[0]).is_ok());
        assert_eq!(two.group_mut().accept(&sent[0], &[0]), Err(Refusal::Duplicate));
        assert_eq!(two.group_mut().accept(&sent[2], &[2]), Err(Refusal::Gap { expected: 2 }));
        assert!(two.group_mut().accept(&sent[1], &[1]).is_ok());
        assert!(two.group_mut().accept(&sent[2], &[2]).is_ok());
    }

    #[test]
    fn a_check_changes_nothing_and_needs_no_order() {
        let [mut one, mut two, three] = three();
        let first = one.group_mut().attest(b"1").unwrap();
        let second = one.group_mut().attest(b"2").unwrap();
        for _ in 0..2 {
            // A third device checks what it was forwarded, also by who has not taken it.
            assert_eq!(three.group().check(&second, b"2").unwrap().counter, 2);
            assert_eq!(two.group().check(&second, b"2").unwrap().counter, 2);
        }
        assert_eq!(two.group().position(id(1)).unwrap().progress, Progress::Taken(0));
        assert!(two.group_mut().accept(&first, b"1").is_ok());
        // A device checks its own log.
        assert_eq!(one.group().check(&first, b"1").unwrap().device, id(1));
    }

    #[test]
    fn a_device_takes_nothing_of_its_own_and_nothing_of_strangers() {
        let [mut one, ..] = three();
        let attestation = one.group_mut().attest(b"1").unwrap();
        assert_eq!(one.group_mut().accept(&attestation, b"1"), Err(Refusal::NotPeer));
        let mut stranger = device(&[1, 4], start(4, 1));
        let foreign = stranger.group_mut().attest(b"1").unwrap();
        assert_eq!(one.group_mut().accept(&foreign, b"1"), Err(Refusal::Mac));
    }
}

mod reissue {
    use super::*;

    #[test]
    fn the_last_attestations_come_again_byte_for_byte() {
        let [mut one, mut two, _] = three();
        let sent: Vec<_> = (0..6u8).map(|body| one.group_mut().attest(&[body]).unwrap()).collect();
        for counter in 3..=6 {
            assert_eq!(one.group().reissue(counter), Ok(sent[counter as usize - 1]));
        }
        for counter in [0, 1, 2, 7, 10] {
            assert_eq!(one.group().reissue(counter), Err(Misuse::Forgotten), "counter {counter}");
        }
        assert_eq!(one.group().sent(), 6);
        assert!(two.group_mut().accept(&sent[0], &[0]).is_ok());
    }

    /// A crash of the host between attesting and logging must not block a correct node for ever.
    #[test]
    fn a_host_that_wrote_the_message_first_closes_the_gap_after_a_crash() {
        let [mut one, mut two, _] = three();
        let written = b"written before it was attested";
        one.group_mut().attest(written).unwrap();
        let next = one.group_mut().attest(b"next").unwrap();
        assert_eq!(two.group_mut().accept(&next, b"next"), Err(Refusal::Gap { expected: 1 }));
        let again = one.group().reissue(1).unwrap();
        assert!(two.group_mut().accept(&again, written).is_ok());
        assert!(two.group_mut().accept(&next, b"next").is_ok());
    }
}

mod epochs {
    use super::*;

    fn ballots(voters: &mut [&mut Device], newcomer: Start, about: u32) -> Vec<Ballot> {
        let vote = |voter: &mut &mut Device| voter.group_mut().vote(newcomer, id(about)).unwrap();
        voters.iter_mut().map(vote).collect()
    }

    #[test]
    fn a_restarted_device_is_refused_until_a_quorum_admits_its_epoch() {
        let [mut one, mut two, mut three] = three();
        one.group_mut().attest(b"old").unwrap();
        let newcomer = start(1, 2);
        let mut one = device(&[1, 2, 3], newcomer);
        let fresh = one.group_mut().attest(b"new").unwrap();
        assert_eq!(
            two.group_mut().accept(&fresh, b"new"),
            Err(Refusal::Epoch { admitted: Epoch(1) })
        );
        let votes = ballots(&mut [&mut two, &mut three], newcomer, 1);
        assert_eq!(two.group_mut().admit(newcomer, &votes[..1]), Err(Refusal::Votes));
        let twice = [votes[0], votes[0]];
        assert_eq!(two.group_mut().admit(newcomer, &twice), Err(Refusal::Votes));
        two.group_mut().admit(newcomer, &votes).unwrap();
        assert!(two.group_mut().accept(&fresh, b"new").is_ok());
    }

    #[test]
    fn an_old_epoch_is_never_taken_again() {
        let [mut old, mut two, mut three] = three();
        let newcomer = start(1, 2);
        let votes = ballots(&mut [&mut two, &mut three], newcomer, 1);
        // A clone of the old device still runs.
        let late = old.group_mut().attest(b"late").unwrap();
        assert_eq!(two.group_mut().accept(&late, b"late"), Err(Refusal::NotSynchronized));
        two.group_mut().admit(newcomer, &votes).unwrap();
        let admitted = Epoch(2);
        assert_eq!(two.group_mut().accept(&late, b"late"), Err(Refusal::Epoch { admitted }));
        // The same votes admit the epoch once: its counter never restarts.
        assert_eq!(two.group_mut().admit(newcomer, &votes), Err(Refusal::NotNewer));
        assert_eq!(two.group_mut().admit(start(1, 1), &votes), Err(Refusal::NotNewer));
    }

    #[test]
    fn votes_of_messages_newcomers_and_old_epochs_do_not_count() {
        let [mut one, mut two, mut three] = three();
        let newcomer = start(1, 2);
        let votes = ballots(&mut [&mut two, &mut three], newcomer, 1);
        // A message of a liar's host with the bytes of a vote.
        let attestation = three.group_mut().attest(&votes[1].vote.encode()).unwrap();
        let disguised = [votes[0], Ballot { attestation, ..votes[1] }];
        assert_eq!(two.group_mut().admit(newcomer, &disguised), Err(Refusal::Votes));
        // The newcomer itself: its old device votes for its new one.
        let own = one.group_mut().vote(start(3, 2), id(1)).unwrap();
        let mut of_newcomer = own;
        of_newcomer.vote.newcomer = newcomer;
        let forged = [of_newcomer, votes[0]];
        assert_eq!(two.group_mut().admit(newcomer, &forged), Err(Refusal::Mac));
    }

    #[test]
    fn a_clone_of_a_voter_in_an_old_epoch_does_not_count() {
        let [mut one, mut two, mut clone] = three();
        let newer = start(3, 2);
        let votes = ballots(&mut [&mut one, &mut two], newer, 2);
        two.group_mut().admit(newer, &votes).unwrap();
        let newcomer = start(1, 2);
        let votes = ballots(&mut [&mut two, &mut clone], newcomer, 2);
        assert_eq!(two.group_mut().admit(newcomer, &votes), Err(Refusal::Votes));
    }

    #[test]
    fn a_receiver_that_has_restarted_takes_nothing_twice() {
        let [mut one, mut two, mut three] = three();
        let before = one.group_mut().attest(b"before").unwrap();
        assert!(two.group_mut().accept(&before, b"before").is_ok());
        let newcomer = start(2, 2);
        let mut two = device(&[1, 2, 3], newcomer);
        assert_eq!(two.group_mut().accept(&before, b"before"), Err(Refusal::NotSynchronized));
        let votes = ballots(&mut [&mut one, &mut three], newcomer, 1);
        two.group_mut().synchronize(id(1), &votes).unwrap();
        assert_eq!(two.group_mut().accept(&before, b"before"), Err(Refusal::Duplicate));
        let after = one.group_mut().attest(b"after").unwrap();
        assert!(two.group_mut().accept(&after, b"after").is_ok());
        assert_eq!(two.group_mut().synchronize(id(1), &votes), Err(Refusal::NotNewer));
    }

    /// Epochs can be foretold, so a liar votes for the next one before its later messages.
    #[test]
    fn a_vote_that_is_older_than_the_restart_synchronizes_nobody() {
        let [mut one, _, mut three] = three();
        let mut foretold = start(2, 2);
        foretold.nonce = [0; 16];
        let early = one.group_mut().vote(foretold, id(1)).unwrap();
        let mut two = device(&[1, 2, 3], start(2, 2));
        let other = three.group_mut().vote(start(2, 2), id(1)).unwrap();
        let votes = [early, other];
        assert_eq!(two.group_mut().synchronize(id(1), &votes), Err(Refusal::Votes));
    }

    /// A clone of a peer's device in an old epoch cannot lead a restarted device astray.
    #[test]
    fn a_clone_in_an_old_epoch_synchronizes_nobody() {
        let [mut clone, mut two, mut three] = three();
        let newer = start(1, 2);
        let votes = ballots(&mut [&mut two, &mut three], newer, 1);
        three.group_mut().admit(newer, &votes).unwrap();
        let newcomer = start(2, 2);
        let mut two = device(&[1, 2, 3], newcomer);
        let votes = ballots(&mut [&mut clone, &mut three], newcomer, 1);
        assert_eq!(two.group_mut().synchronize(id(1), &votes), Err(Refusal::Votes));
        let alone = &votes[..1];
        assert_eq!(two.group_mut().synchronize(id(1), alone), Err(Refusal::Votes));
    }

    /// Two quorums of voters share a member, who must not state the epoch that it voted to replace.
    #[test]
    fn a_voter_for_a_newer_epoch_does_not_state_the_older_one() {
        let [_, _, mut three] = three();
        three.group_mut().vote(start(1, 2), id(3)).unwrap();
        let stated = three.group_mut().vote(start(2, 2), id(1));
        assert_eq!(stated, Err(Misuse::NotSynchronized));
    }

    /// Found by the explorer: a vote must not make a device forget what it has taken.
    #[test]
    fn a_device_that_has_voted_is_not_synchronized_again() {
        let [mut one, _, mut three] = three();
        let newcomer = start(2, 2);
        let mut two = device(&[1, 2, 3], newcomer);
        let votes = ballots(&mut [&mut one, &mut three], newcomer, 1);
        two.group_mut().synchronize(id(1), &votes).unwrap();
        let after = one.group_mut().attest(b"after").unwrap();
        two.group_mut().accept(&after, b"after").unwrap();
        two.group_mut().vote(start(1, 2), id(2)).unwrap();
        assert_eq!(two.group_mut().synchronize(id(1), &votes), Err(Refusal::NotNewer));
    }

    #[test]
    fn a_restarted_device_neither_votes_for_nor_admits_peers_that_it_does_not_know() {
        let [_, mut old_two, mut three] = three();
        let newcomer = start(1, 2);
        let votes = ballots(&mut [&mut old_two, &mut three], newcomer, 1);
        let mut two = device(&[1, 2, 3], start(2, 2));
        let vote = two.group_mut().vote(newcomer, id(2));
        assert_eq!(vote, Err(Misuse::NotSynchronized));
        assert_eq!(two.group_mut().admit(newcomer, &votes), Err(Refusal::NotNewer));
    }

    #[test]
    fn a_device_has_no_vote_for_itself() {
        let [mut old, ..] = three();
        assert_eq!(old.group_mut().vote(start(1, 2), id(1)), Err(Misuse::NotPeer));
        let mut restarted = device(&[1, 2, 3], start(1, 2));
        assert_eq!(restarted.group_mut().vote(start(1, 2), id(1)), Err(Misuse::NotPeer));
    }

    #[test]
    fn votes_are_messages_of_the_voters_stream() {
        let [mut one, mut two, _] = three();
        let ballot = one.group_mut().vote(start(3, 2), id(1)).unwrap();
        let header = two.group_mut().accept(&ballot.attestation, &ballot.vote.encode()).unwrap();
        assert_eq!((header.kind, header.counter), (Kind::Vote, 1));
    }
}

mod groups {
    use super::*;

    #[test]
    fn a_group_that_cannot_work_is_refused() {
        let member = |device, epoch| Member { device: id(device), epoch: Epoch(epoch) };
        let open = |quorum, members: &[Member]| {
            let algorithm = Algorithm::HmacSha256;
            let group = Group { stream: STREAM, algorithm, quorum, members };
            Device::start(start(1, 1)).open(&GroupSecret::new([9; 32]), &group)
        };
        assert_eq!(open(1, &[member(1, 1)]), Ok(()));
        assert_eq!(open(1, &[]), Err(Misuse::Group));
        assert_eq!(open(1, &[member(2, 1)]), Err(Misuse::Group));
        assert_eq!(open(1, &[member(2, 1), member(1, 1)]), Err(Misuse::Group));
        assert_eq!(open(1, &[member(1, 1), member(1, 1)]), Err(Misuse::Group));
        assert_eq!(open(1, &[member(1, 0)]), Err(Misuse::Group));
        assert_eq!(open(0, &[member(1, 1), member(2, 1)]), Err(Misuse::Group));
        assert_eq!(open(2, &[member(1, 1), member(2, 1)]), Err(Misuse::Group));
        let many = [1, 2, 3, 4, 5, 6].map(|it| member(it, 1));
        assert_eq!(open(2, &many), Err(Misuse::Full));
    }
}

#[cfg(feature = "ed25519")]
mod signatures {
    use super::*;
    use smt_attestation::{SigningKey, verify_signature};

    #[test]
    fn third_parties_verify_what_the_device_has_attested() {
        let [mut one, ..] = three();
        let attestation = one.group_mut().attest(b"reply").unwrap();
        let key = SigningKey::new(&[3; 32]);
        let public = key.public_key();
        let signature = key.sign(one.group(), 1, b"reply").unwrap();
        let header = attestation.header_bytes();
        assert!(verify_signature(&public, &header, b"reply", &signature));
        assert!(!verify_signature(&public, &header, b"other", &signature));
        for offset in 0..32 {
            let header = altered(attestation, offset).header_bytes();
            assert!(!verify_signature(&public, &header, b"reply", &signature), "byte {offset}");
        }
    }

    /// A host that knows the group's key forges MACs, and signatures all the same not.
    #[test]
    fn only_attested_messages_are_signed() {
        let [mut one, ..] = three();
        let key = SigningKey::new(&[3; 32]);
        one.group_mut().attest(b"attested").unwrap();
        let mut forger = device(&[1, 2, 3], start(1, 1));
        let forged = forger.group_mut().attest(b"forged").unwrap();
        assert!(one.group().check(&forged, b"forged").is_ok());
        assert_eq!(key.sign(one.group(), 1, b"forged"), Err(Misuse::OtherMessage));
        assert_eq!(key.sign(one.group(), 2, b"forged"), Err(Misuse::Forgotten));
    }
}

#[cfg(feature = "blake3")]
#[test]
fn a_group_of_blake3_takes_no_macs_of_hmac() {
    let open = |algorithm, it| {
        let members = [1, 2].map(|it| Member { device: id(it), epoch: Epoch(1) });
        let mut device = Device::start(start(it, 1));
        let group = Group { stream: STREAM, algorithm, quorum: 1, members: &members };
        device.open(&GroupSecret::new([9; 32]), &group).unwrap();
        device
    };
    let mut two = open(Algorithm::Blake3, 2);
    let fast = open(Algorithm::Blake3, 1).group_mut().attest(b"body").unwrap();
    let slow = open(Algorithm::HmacSha256, 1).group_mut().attest(b"body").unwrap();
    assert_eq!(two.group_mut().accept(&slow, b"body"), Err(Refusal::Malformed));
    let mut header = slow.claim().unwrap();
    header.algorithm = Algorithm::Blake3;
    let disguised = Attestation::new(&header.encode(), &slow.mac());
    assert_eq!(two.group_mut().accept(&disguised, b"body"), Err(Refusal::Mac));
    assert!(two.group_mut().accept(&fast, b"body").is_ok());
}

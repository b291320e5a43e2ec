// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A device that outlives its host, and the log of what it has given.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_attestation::{
    Algorithm, DeviceId, Epoch, Group, GroupSecret, Member, SigningKey, Start, StreamId,
};
use smt_attestor::{
    Attested, Attestor, AttestorError, Given, Machine, OutlivingDevice, OwnDevice, Replay,
};

/// Says one thing for each input.
struct Speaker(Attestor);

impl Machine for Speaker {
    type Input = u8;

    fn attestor(&mut self) -> &mut Attestor {
        &mut self.0
    }

    fn take_again(&mut self, input: u8) {
        let _ = self.0.attest_signed(&[input]);
    }
}

fn start() -> Start {
    Start { device: DeviceId(0), epoch: Epoch(1), nonce: [0; 16] }
}

fn device() -> OutlivingDevice {
    OutlivingDevice::start(start(), GroupSecret::new([1; 32]), SigningKey::new(&[2; 32]))
}

fn open(own: OwnDevice) -> Speaker {
    let member = |device| Member { device: DeviceId(device), epoch: Epoch(1) };
    let members = [member(0), member(1)];
    let (stream, algorithm) = (StreamId(3), Algorithm::HmacSha256);
    let group = Group { stream, algorithm, quorum: 1, members: &members };
    Speaker(Attestor::open(&group, own).unwrap())
}

/// Reads a log of these inputs, and of what was given for them; logs the rest up to `most` givings.
fn read(
    own: OwnDevice,
    inputs: u8,
    logged: &mut Vec<Given>,
    most: usize,
) -> Result<Speaker, AttestorError> {
    let (mut speaker, mut replay) = (open(own), Replay::default());
    (0..inputs).for_each(|it| replay.input(&mut speaker, it));
    if !logged.is_empty() {
        replay.given(&mut speaker, logged.clone());
    }
    replay.finish(&mut speaker, |given| {
        logged.extend(given);
        // The process is killed.
        if logged.len() < most { Ok(()) } else { Err(AttestorError::Foreign) }
    })?;
    Ok(speaker)
}

// Once, the log got nothing of what was given before it was read to its end: a device that issues
// its last 64 attestations again could not give the others.
#[test]
fn a_host_that_is_killed_again_while_it_reads_its_log_goes_on_where_it_was() {
    let (device, mut logged) = (device(), Vec::new());
    assert!(read(device.own_device(), 200, &mut logged, 80).is_err());
    assert!(read(device.own_device(), 200, &mut logged, 160).is_err());
    let mut speaker = read(device.own_device(), 200, &mut logged, usize::MAX).unwrap();
    assert_eq!((speaker.0.counter(), logged.len()), (200, 200));
    assert_eq!(speaker.0.attest(b"new").unwrap().claim().unwrap().counter, 201);
}

#[test]
fn a_statement_that_was_attested_and_not_logged_is_signed_alike_again() {
    let device = device();
    let mut speaker = open(device.own_device());
    let (attestation, signature) = speaker.0.attest_signed(&[0]).unwrap();
    let mut logged = Vec::new();
    let speaker = read(device.own_device(), 1, &mut logged, usize::MAX).unwrap();
    assert_eq!((speaker.0.counter(), speaker.0.reissues()), (1, 1));
    let [Given::Signed(halves, again)] = logged[..] else {
        panic!("{logged:?}");
    };
    assert_eq!(halves, [attestation.header_bytes(), attestation.mac()]);
    assert_eq!(again, signature);
}

#[test]
fn a_log_that_is_older_than_the_counter_or_of_other_statements_is_refused() {
    let device = device();
    let mut logged = Vec::new();
    read(device.own_device(), 3, &mut logged, usize::MAX).unwrap();
    let refused = read(device.own_device(), 2, &mut Vec::new(), usize::MAX).err();
    assert!(matches!(refused, Some(AttestorError::Ahead)), "{refused:?}");
    let refused = read(device.own_device(), 0, &mut Vec::new(), usize::MAX).err();
    assert!(matches!(refused, Some(AttestorError::Ahead)), "{refused:?}");
    logged.swap(0, 1);
    let refused = read(device.own_device(), 3, &mut logged, usize::MAX).err();
    assert!(matches!(refused, Some(AttestorError::Foreign)), "{refused:?}");
}

#[test]
fn a_snapshot_of_more_statements_than_the_device_has_given_is_refused() {
    let device = device();
    let mut speaker = open(device.own_device());
    speaker.0.attest(b"one").unwrap();
    let begin = |counter| open(device.own_device()).0.begin_at(counter);
    assert!(begin(1).is_ok());
    assert!(matches!(begin(2), Err(AttestorError::Foreign)));
    // A kernel in the process starts with its host, and comes to any counter.
    let secret = GroupSecret::new([1; 32]);
    let mut kernel = open(OwnDevice::Library { secret, start: start(), signing_key: None });
    kernel.0.begin_at(5).unwrap();
    assert_eq!(kernel.0.attest(b"six").unwrap().claim().unwrap().counter, 6);
}

/// Checks a statement of its peer, and says what it knows after that.
struct Judge(Attestor, Attested);

impl Machine for Judge {
    type Input = u8;

    fn attestor(&mut self) -> &mut Attestor {
        &mut self.0
    }

    fn take_again(&mut self, _: u8) {
        let is_known = self.0.check(&self.1.attestation(), &self.1.body).is_some();
        let _ = self.0.attest(&[u8::from(is_known)]);
    }
}

impl Judge {
    fn open(device: &OutlivingDevice) -> Self {
        let peer = Start { device: DeviceId(1), ..start() };
        let secret = GroupSecret::new([1; 32]);
        let mut peer = open(OwnDevice::Library { secret, start: peer, signing_key: None });
        let said = Attested::new(&peer.0.attest(b"it").unwrap(), b"it".to_vec());
        Self(open(device.own_device()).0, said)
    }
}

// Once, it said under a counter what it would not have said with the check, and its log was refused
// from then on.
#[test]
fn a_replica_whose_device_failed_at_a_check_says_nothing_more_and_its_log_is_read_again() {
    let device = device();
    let mut judge = Judge::open(&device);
    device.end_for(1);
    judge.take_again(0);
    assert!(judge.0.vote(start(), DeviceId(1)).is_none() && judge.0.attest_signed(&[]).is_none());
    assert!(matches!(judge.0.failure(), Some(AttestorError::Device(_))));
    assert!(judge.0.attest(&[0]).is_none(), "also when the failure was told");
    assert!(judge.0.failure().is_none() && judge.0.take_unlogged().is_empty());
    // It fails again while it reads its log, and then no more.
    for is_absent in [true, false] {
        let (mut judge, mut replay, mut logged) = (Judge::open(&device), Replay::default(), 0);
        judge.0.stop_after(1);
        (0..2).for_each(|it| replay.input(&mut judge, it));
        device.end_for(u32::from(is_absent));
        let read = replay.finish::<AttestorError>(&mut judge, |given| {
            logged += given.len();
            Ok(())
        });
        assert_eq!(read.is_err(), is_absent);
        assert_eq!(logged, if is_absent { 0 } else { 2 });
    }
}

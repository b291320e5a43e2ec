// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The host: it owns the memory, and the device of another member.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smt_attestation::{
    Algorithm, Attestation, Ballot, DeviceId, Epoch, Group, Kernel, Member, Refusal, Start,
    StreamId,
};
use smt_device::Session;
use smt_device_client::layout::{ANSWERS, ANSWERS_READ, REQUESTS, REQUESTS_WRITTEN, WORDS};
use smt_device_client::{
    Answer, Device, End, EntryKind, LogId, Reader, Request, SecretNumber, SharedMemory, Statement,
    Writer,
};
use smt_simulation::Random;

use super::sight::Sight;
use super::witness::Witness;
use super::{any_start, group_secret};

/// The group that the host opens: the device, and the member that is the host's own.
const STREAM: StreamId = StreamId(1);
/// The group of sound requests, by which the host sees that the device works.
const SOUND: StreamId = StreamId(9);
/// Logs that the host appends to. One more is sealed soundly.
const LOGS: usize = 2;
/// Messages of the other member that are kept to be sent again.
const SENT_MAX: usize = 20_000;

pub(crate) struct Host {
    memory: Arc<SharedMemory>,
    requests: Writer,
    answers: Reader,
    /// A genuine device of another member. Its messages are repeated, reordered and altered.
    other: Box<Kernel<2, 1, 4>>,
    sent: Vec<(Attestation, Vec<u8>)>,
    /// Where in `sent` the host is that delivers in order.
    next: usize,
    /// Requests that the device did not know as such.
    pub(crate) malformed: u64,
    /// Words that were changed outside of the device's accesses.
    pub(crate) changed: u64,
    /// The end of each log of the host's, as the host believes, and the sealed one.
    logs: [[End; 2]; LOGS],
    /// Attestations that the device has given.
    attested: Vec<Attestation>,
    tag: u32,
    body: Vec<u8>,
}

fn members() -> [Member; 2] {
    [1, 2].map(|device| Member { device: DeviceId(device), epoch: Epoch(1) })
}

fn other() -> Box<Kernel<2, 1, 4>> {
    let own = Start { device: DeviceId(2), epoch: Epoch(1), nonce: [0; 16] };
    let mut kernel = Box::new(Kernel::start(own));
    let algorithm = Algorithm::HmacSha256;
    for stream in [STREAM, SOUND] {
        let group = Group { stream, algorithm, quorum: 1, members: &members() };
        kernel.open(&group_secret(), &group).unwrap();
    }
    kernel
}

impl Host {
    pub(crate) fn new(session: &Session) -> Self {
        let memory = session.memory().clone();
        Self {
            requests: Writer::of_requests(memory.clone()),
            answers: Reader::of_answers(memory.clone()),
            memory,
            other: other(),
            sent: Vec::new(),
            next: 0,
            malformed: 0,
            changed: 0,
            logs: [[End::default(); 2]; LOGS],
            attested: Vec::new(),
            tag: 0,
            body: Vec::new(),
        }
    }

    /// Goes on with another connection.
    pub(crate) fn connect(&mut self, session: &Session) {
        self.memory = session.memory().clone();
        self.requests = Writer::of_requests(self.memory.clone());
        self.answers = Reader::of_answers(self.memory.clone());
    }

    /// Writes a request, sound or not, and shows it to the device.
    pub(crate) fn request(&mut self, random: &mut Random, own: Start) {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        self.make(random, own, &mut body);
        if random.below(4) == 0 && !body.is_empty() {
            let place = random.below(body.len() as u64) as usize;
            match random.below(3) {
                0 => body.truncate(place),
                1 => body.push(random.next_u64() as u8),
                _ => body[place] ^= 1 << random.below(8),
            }
        }
        self.tag = self.tag.wrapping_add(1);
        // A ring that is full, or that the host has broken itself, takes nothing.
        let _ = self.requests.push(self.tag, &body);
        self.requests.publish();
        self.body = body;
    }

    fn make(&mut self, random: &mut Random, own: Start, out: &mut Vec<u8>) {
        let stream = StreamId(random.below(2) as u32 + 1);
        let length = random.below(200) as usize;
        let message: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
        match random.below(20) {
            16..20 => self.log_request(random, out),
            0 => {
                let mut members = members().to_vec();
                members[0].epoch = Epoch(1 + random.below(own.epoch.0));
                let secret = SecretNumber(random.below(3) as u32);
                Request::Open(secret, stream, Algorithm::HmacSha256, 1, members).encode(out);
            }
            1..5 => Request::Attest(stream, &message).encode(out),
            5..9 => {
                let given = self.other.stream_mut(STREAM).unwrap().attest(&message).unwrap();
                self.sent.push((given, message));
                let place = self.place(random);
                let (attestation, message) = &self.sent[place];
                Request::Accept(stream, *attestation, message).encode(out);
            }
            9 => Request::Check(stream, self.any(random), &message).encode(out),
            10 => Request::Sign(stream, random.below(100), &message).encode(out),
            11 => Request::Reissue(stream, random.below(1000)).encode(out),
            // A vote for the other member's newer epoch ends what is taken of it, so it is rare.
            12 if random.below(256) > 0 => {
                Request::Position(stream, DeviceId(random.below(3) as u32)).encode(out);
            }
            12 => {
                let newcomer = any_start(random, own);
                Request::Vote(stream, newcomer, DeviceId(random.below(3) as u32)).encode(out);
            }
            13 => {
                let ballots = self.ballots(random, own);
                Request::Admit(stream, any_start(random, own), ballots).encode(out);
            }
            14 => {
                let ballots = self.ballots(random, own);
                Request::Synchronize(stream, DeviceId(2), ballots).encode(out);
            }
            _ => out.extend((0..random.below(64)).map(|_| random.next_u64() as u8)),
        }
    }

    /// A request for a log: mostly the next entry, sometimes one over an older end, on the log's
    /// own stream too. A start of the device makes the host go back to the sealed end.
    fn log_request(&mut self, random: &mut Random, out: &mut Vec<u8>) {
        let number = random.below(LOGS as u64) as usize;
        let log = LogId(number as u32);
        let [appended, sealed] = &mut self.logs[number];
        let kind = if random.chance(50) { EntryKind::Tail } else { EntryKind::Data };
        let next = |end: &End, random: &mut Random| {
            let (context_hash, previous) = ([random.next_u64() as u8; 32], end.digest);
            Statement { kind, sequence: end.sequence + 1, context_hash, previous }
        };
        match random.below(32) {
            0..12 => {
                let entry = next(appended, random);
                *appended = entry.end();
                Request::Append(log, entry).encode(out);
            }
            12..14 => Request::Append(log, next(sealed, random)).encode(out),
            14..16 => Request::OpenLog(log).encode(out),
            16 => Request::OpenLog(LogId(random.next_u64() as u32)).encode(out),
            17..20 => {
                *appended = *sealed;
                Request::Discard.encode(out);
            }
            // Each sealing is a write of the TPM, so it is rare.
            20..22 if random.chance(30) => {
                Request::Seal(vec![(log, *appended)]).encode(out);
            }
            22 if random.chance(10) => {
                Request::Seal(vec![(log, *sealed), (LogId(9), *sealed)]).encode(out);
            }
            23..26 => Request::SignEnd(log).encode(out),
            26 => Request::LogAt(random.below(4) as u32).encode(out),
            27 => {
                let members = vec![Member { device: DeviceId(1), epoch: Epoch(1) }];
                let (stream, algorithm) = (log.stream().unwrap(), Algorithm::HmacSha256);
                Request::Open(SecretNumber(0), stream, algorithm, 1, members).encode(out);
            }
            28..30 => {
                let entry = next(sealed, random).encode();
                Request::Attest(log.stream().unwrap(), &entry).encode(out);
            }
            _ => {
                let entry = next(sealed, random).encode();
                Request::Sign(log.stream().unwrap(), random.below(8), &entry).encode(out);
            }
        }
    }

    /// Mostly the next message, sometimes an earlier one or any: in order, repeated, with gaps.
    fn place(&mut self, random: &mut Random) -> usize {
        if self.sent.len() > SENT_MAX {
            self.sent.drain(..SENT_MAX / 2);
            self.next = self.next.saturating_sub(SENT_MAX / 2);
        }
        let last = self.sent.len() - 1;
        match random.below(8) {
            0 => random.below(last as u64 + 1) as usize,
            1 => {
                self.next = self.next.saturating_sub(random.below(8) as usize);
                self.next
            }
            2 => {
                self.next = last;
                last
            }
            _ => {
                let place = self.next.min(last);
                self.next = place + 1;
                place
            }
        }
    }

    fn ballots(&mut self, random: &mut Random, own: Start) -> Vec<Ballot> {
        let newcomer = any_start(random, own);
        let voted = self.other.stream_mut(STREAM).unwrap().vote(newcomer, DeviceId(2));
        if let Ok(ballot) = &voted {
            self.sent.push((ballot.attestation, ballot.vote.encode().to_vec()));
        }
        voted.into_iter().collect()
    }

    fn any(&self, random: &mut Random) -> Attestation {
        let count = self.attested.len() as u64;
        if count == 0 { Attestation([1; 64]) } else { self.attested[random.below(count) as usize] }
    }

    /// Changes words of the memory while the device does nothing.
    pub(crate) fn change(&mut self, random: &mut Random) {
        for _ in 0..=random.below(4) {
            change_word(&self.memory, random, REQUESTS);
            self.changed += 1;
        }
    }

    /// Reads what the device has answered.
    pub(crate) fn read(&mut self, sight: &mut Sight) {
        let mut body = std::mem::take(&mut self.body);
        while let Ok(Some(_)) = self.answers.next(&mut body) {
            sight.sees(&body);
            match Answer::decode(&body) {
                Some(Answer::Attestation(it)) if self.attested.len() < 1000 => {
                    self.attested.push(it);
                }
                Some(Answer::Log(Some((log, end)))) if (log.0 as usize) < LOGS => {
                    self.logs[log.0 as usize] = [end; 2];
                }
                Some(Answer::Malformed) => self.malformed += 1,
                Some(Answer::Refused(Refusal::Gap { expected })) => self.goes_on_at(expected),
                _ => {}
            }
        }
        self.answers.publish();
        self.body = body;
    }

    /// A request was lost to the host's own changes: it goes on where the device stands.
    fn goes_on_at(&mut self, counter: u64) {
        let first = self.sent.first().and_then(|it| it.0.claim()).map_or(1, |it| it.counter);
        self.next = (counter.saturating_sub(first) as usize).min(self.sent.len());
    }

    /// Shows all of the shared memory to whoever looks for keys in it.
    pub(crate) fn shows_all(&self, sight: &mut Sight) {
        for index in 0..WORDS {
            sight.sees(&self.memory.word(index).load(Ordering::Relaxed).to_ne_bytes());
        }
    }

    /// A sound request over a connection that nobody has touched. The device answers it.
    fn ask(
        &mut self,
        session: &mut Session,
        device: &mut Witness,
        request: &Request<'_>,
    ) -> Answer {
        let mut body = Vec::new();
        request.encode(&mut body);
        self.tag = self.tag.wrapping_add(1);
        assert_eq!(self.requests.push(self.tag, &body), Ok(true), "a new ring has no room");
        self.requests.publish();
        assert_eq!(session.serve(device, 1), Ok(1), "a sound request is not served");
        assert_eq!(self.answers.next(&mut body), Ok(Some(self.tag)), "an answer is missing");
        self.answers.publish();
        Answer::decode(&body).expect("an answer is none")
    }

    /// Any connection is as good as the first one.
    pub(crate) fn asks_soundly(&mut self, session: &mut Session, device: &mut Witness) {
        let answer = self.ask(session, device, &Request::Sent(StreamId(77)));
        assert!(matches!(answer, Answer::Sent(_)), "{answer:?}");
    }

    /// A device that has just started opens a group, and the other member knows what it attests.
    pub(crate) fn opens_and_attests(&mut self, session: &mut Session, device: &mut Witness) {
        self.open(session, device, SOUND);
        let attested = self.ask(session, device, &Request::Attest(SOUND, b"sound"));
        let Answer::Attestation(attestation) = attested else {
            panic!("a device that has started does not attest: {attested:?}");
        };
        let stream = self.other.stream(SOUND).unwrap();
        let header = stream.check(&attestation, b"sound").expect("the other member refuses it");
        assert_eq!((header.epoch, header.counter), (device.own().epoch, 1));
    }

    /// Opens the group of the search as its provisioner has formed it, and learns where the other
    /// member's stream stands.
    pub(crate) fn opens_the_group(&mut self, session: &mut Session, device: &mut Witness) {
        self.open(session, device, STREAM);
        let voted = self.other.stream_mut(STREAM).unwrap().vote(device.own(), DeviceId(2));
        let ballot = voted.unwrap();
        self.sent.push((ballot.attestation, ballot.vote.encode().to_vec()));
        let request = Request::Synchronize(STREAM, DeviceId(2), vec![ballot]);
        let answer = self.ask(session, device, &request);
        // In the epoch in which the group was formed, it knows that nothing was sent. The mutant
        // believes so in each epoch, and the search goes on until that does harm.
        let is_first = device.own().epoch == Epoch(1) || is_mutant("taken-twice");
        let is_known = is_first && answer == Answer::Refused(Refusal::NotNewer);
        assert!(answer == Answer::Done || is_known, "{answer:?}");
        self.next = self.sent.len();
    }

    /// A log goes on from where the device says that it ends: it is appended to, sealed and signed.
    pub(crate) fn seals_an_entry(&mut self, session: &mut Session, device: &mut Witness) {
        let log = LogId(LOGS as u32);
        let is_it = |answer: &Answer| matches!(answer, Answer::Log(Some((it, _))) if *it == log);
        let all = (0..=LOGS as u32).map(|place| self.ask(session, device, &Request::LogAt(place)));
        let found = all.into_iter().find(is_it);
        let end = match found {
            Some(Answer::Log(Some((_, end)))) => end,
            _ => End::default(),
        };
        let (kind, sequence, previous) = (EntryKind::Tail, end.sequence + 1, end.digest);
        let entry = Statement { kind, sequence, context_hash: [7; 32], previous };
        assert_eq!(self.ask(session, device, &Request::OpenLog(log)), Answer::Done);
        let appended = self.ask(session, device, &Request::Append(log, entry));
        assert!(matches!(appended, Answer::Attestation(_)), "{appended:?}");
        let sealed = self.ask(session, device, &Request::Seal(vec![(log, entry.end())]));
        assert_eq!(sealed, Answer::Done);
        let signed = self.ask(session, device, &Request::SignEnd(log));
        assert!(matches!(signed, Answer::Signature(_)), "{signed:?}");
    }

    /// The logs of a device that has started end where they were sealed.
    pub(crate) fn finds_the_logs(&mut self, session: &mut Session, device: &mut Witness) {
        for number in 0..LOGS {
            let open = Request::OpenLog(LogId(number as u32));
            assert_eq!(self.ask(session, device, &open), Answer::Done);
            self.logs[number] = [device.sealed_end(LogId(number as u32)); 2];
        }
    }

    fn open(&mut self, session: &mut Session, device: &mut Witness, stream: StreamId) {
        let (secret, algorithm) = (SecretNumber(1), Algorithm::HmacSha256);
        let open = Request::Open(secret, stream, algorithm, 1, members().to_vec());
        assert_eq!(self.ask(session, device, &open), Answer::Done);
    }
}

/// Whether this is the run of a mutant (`mutants.toml`).
fn is_mutant(name: &str) -> bool {
    std::env::var("SMT_MUTANT").is_ok_and(|it| it == name)
}

/// Changes a word, often the one that the device is about to use or one that matters.
pub(crate) fn change_word(memory: &SharedMemory, random: &mut Random, used: usize) {
    let place = match random.below(8) {
        0 => REQUESTS_WRITTEN,
        1 => ANSWERS_READ,
        2 => random.below(64) as usize,
        3 => ANSWERS + random.below(4096) as usize,
        4 => random.below(WORDS as u64) as usize,
        5 => REQUESTS + random.below(4096) as usize,
        _ => used,
    };
    let word = memory.word(place);
    let old = word.load(Ordering::Relaxed);
    let new = match random.below(4) {
        0 => random.next_u64(),
        1 => old ^ (1 << random.below(64)),
        2 => old.wrapping_add(random.below(64)),
        _ => old.wrapping_sub(random.below(64)),
    };
    word.store(new, Ordering::Relaxed);
}

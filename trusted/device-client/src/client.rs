// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection to the device process of this host.

use std::cell::RefCell;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use smt_attestation::{
    Attestation, Ballot, DeviceId, Group, Header, PUBLIC_KEY_LEN, Position, SIGNATURE_LEN, Start,
    StreamId,
};

use crate::MESSAGE_LEN_MAX;
use crate::answer::Answer;
use crate::device::{AppendOnly, Claimed, Device, SecretNumber};
use crate::error::DeviceError;
use crate::request::Request;
use crate::ring::{Corrupt, FRAME_LEN_MAX, Reader, Writer};
use crate::shared_memory::SharedMemory;
use crate::statement::{End, LogId, Statement};
use crate::wake::{Hello, Wake};

/// How often the host looks for an answer before it sleeps: some microseconds, about what the
/// device takes for a short message.
const LOOKS: u32 = 500;

/// A device in another process, over rings that both map.
///
/// One thread uses a connection; each thread may have one of its own.
pub struct Client {
    hello: Hello,
    rings: RefCell<Rings>,
}

struct Rings {
    memory: Arc<SharedMemory>,
    requests: Writer,
    answers: Reader,
    wake: Wake,
    /// The tag of the next request, and of the next answer.
    next_request: u32,
    next_answer: u32,
    body: Vec<u8>,
}

impl Client {
    /// Connects to the device that listens at a path.
    ///
    /// # Errors
    /// [`DeviceError::Missing`], [`DeviceError::Busy`], [`DeviceError::Protocol`],
    /// [`DeviceError::System`].
    pub fn connect(path: &Path) -> Result<Self, DeviceError> {
        let missing = |source| DeviceError::Missing { path: path.display().to_string(), source };
        let socket = UnixStream::connect(path).map_err(missing)?;
        let (hello, file) = Hello::receive(&socket)?;
        let memory = Arc::new(SharedMemory::open(file)?);
        let rings = Rings {
            requests: Writer::of_requests(memory.clone()),
            answers: Reader::of_answers(memory.clone()),
            memory,
            wake: Wake::of_host(socket),
            next_request: 0,
            next_answer: 0,
            body: Vec::new(),
        };
        Ok(Self { hello, rings: RefCell::new(rings) })
    }

    /// Has requests done in their order, and returns their answers in the same order. Many of them
    /// cost few system calls.
    ///
    /// # Errors
    /// [`DeviceError::TooLong`], [`DeviceError::PeerTooLong`], [`DeviceError::Ended`],
    /// [`DeviceError::Protocol`], [`DeviceError::System`]. A refusal of the kernel is an answer.
    pub fn ask_all<'r>(
        &self,
        requests: impl IntoIterator<Item = Request<'r>>,
    ) -> Result<Vec<Answer>, DeviceError> {
        let mut rings = self.rings.borrow_mut();
        let mut answers = Vec::new();
        let posted = requests.into_iter().try_for_each(|request| {
            while !rings.post(&request)? {
                answers.push(rings.wait()?);
            }
            while let Some(answer) = rings.take()? {
                answers.push(answer);
            }
            Ok(())
        });
        // Also after a request that was too long: the next call finds no answer of this one.
        while rings.next_answer != rings.next_request {
            answers.push(rings.wait()?);
        }
        posted.map(|()| answers)
    }

    fn ask(&self, request: &Request<'_>) -> Result<Answer, DeviceError> {
        let mut rings = self.rings.borrow_mut();
        // Nothing is outstanding between calls, so there is room.
        if !rings.post(request)? {
            return Err(DeviceError::Protocol("an empty ring has no room"));
        }
        rings.publish()?;
        rings.wait()
    }
}

impl Rings {
    /// Writes a request. False if the ring is full.
    fn post(&mut self, request: &Request<'_>) -> Result<bool, DeviceError> {
        request.judge_length()?;
        self.body.clear();
        request.encode(&mut self.body);
        if self.body.len() > FRAME_LEN_MAX {
            return Err(DeviceError::TooLong(self.body.len()));
        }
        // An empty ring has room for the longest frame, so the caller can wait for it.
        let is_written = self.requests.push(self.next_request, &self.body)?;
        if is_written {
            self.next_request = self.next_request.wrapping_add(1);
            // The device works on the first requests while the host writes the next ones.
            if self.next_request.is_multiple_of(32) {
                self.publish()?;
            }
        }
        Ok(is_written)
    }

    /// Shows all requests to the device, and wakes it if it sleeps.
    fn publish(&mut self) -> Result<(), DeviceError> {
        self.requests.publish();
        Ok(self.wake.wake(&self.memory)?)
    }

    /// The next answer if there is one.
    fn take(&mut self) -> Result<Option<Answer>, DeviceError> {
        let Some(tag) = self.answers.next(&mut self.body)? else {
            return Ok(None);
        };
        self.answers.publish();
        if tag != self.next_answer {
            return Err(DeviceError::Protocol("an answer has the tag of another request"));
        }
        self.next_answer = self.next_answer.wrapping_add(1);
        let answer = Answer::decode(&self.body);
        answer.map(Some).ok_or(DeviceError::Protocol("an answer is none"))
    }

    /// The next answer, for which the host sleeps if need be.
    fn wait(&mut self) -> Result<Answer, DeviceError> {
        self.publish()?;
        loop {
            for _ in 0..LOOKS {
                if let Some(answer) = self.take()? {
                    // A device that found the ring of answers full sleeps until there is room.
                    self.wake.wake(&self.memory)?;
                    return Ok(answer);
                }
                std::hint::spin_loop();
            }
            self.sleep()?;
        }
    }

    fn sleep(&mut self) -> Result<(), DeviceError> {
        self.wake.sleep(&self.memory, true);
        if self.answers.is_empty()? {
            match poll(&mut [PollFd::new(self.wake.socket(), PollFlags::IN)], None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let is_there = self.wake.take()?;
            if !is_there && self.answers.is_empty()? {
                return Err(DeviceError::Ended);
            }
        }
        self.wake.sleep(&self.memory, false);
        Ok(())
    }
}

impl From<Corrupt> for DeviceError {
    fn from(Corrupt(why): Corrupt) -> Self {
        Self::Protocol(why)
    }
}

/// The answer's field if it is of the kind that the request has, else its error.
macro_rules! expect {
    ($answer:expr, $kind:ident) => {
        match $answer? {
            Answer::$kind(it) => Ok(it),
            other => Err(error_of(other)),
        }
    };
}

fn error_of(answer: Answer) -> DeviceError {
    match answer {
        Answer::Misuse(misuse) => DeviceError::Misuse(misuse),
        Answer::Refused(refusal) => DeviceError::Refused(refusal),
        Answer::LogMisuse(misuse) => DeviceError::Log(misuse),
        Answer::UnknownStream(stream) => DeviceError::UnknownStream(stream),
        Answer::UnknownSecret(secret) => DeviceError::UnknownSecret(secret),
        Answer::Malformed => DeviceError::Protocol("the device does not know the request"),
        _ => DeviceError::Protocol("an answer is that of another request"),
    }
}

fn attestations(answers: Vec<Answer>) -> Result<Vec<Attestation>, DeviceError> {
    let answers = answers.into_iter();
    answers.map(|answer| expect!(Ok::<_, DeviceError>(answer), Attestation)).collect()
}

fn done(answer: Answer) -> Result<(), DeviceError> {
    if answer == Answer::Done { Ok(()) } else { Err(error_of(answer)) }
}

impl Device for Client {
    fn own(&self) -> Start {
        self.hello.own
    }

    fn public_key(&self) -> [u8; PUBLIC_KEY_LEN] {
        self.hello.public_key
    }

    fn open(&mut self, secret: SecretNumber, group: &Group<'_>) -> Result<(), DeviceError> {
        let Group { stream, algorithm, quorum, members } = *group;
        done(self.ask(&Request::Open(secret, stream, algorithm, quorum, members.to_vec()))?)
    }

    fn attest(&mut self, stream: StreamId, message: &[u8]) -> Result<Attestation, DeviceError> {
        expect!(self.ask(&Request::Attest(stream, message)), Attestation)
    }

    fn attest_all(
        &mut self,
        stream: StreamId,
        messages: &[&[u8]],
    ) -> Result<Vec<Attestation>, DeviceError> {
        let requests = messages.iter().map(|message| Request::Attest(stream, message));
        attestations(self.ask_all(requests)?)
    }

    fn accept(
        &mut self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError> {
        expect!(self.ask(&Request::Accept(stream, *attestation, message)), Header)
    }

    fn check(
        &self,
        stream: StreamId,
        attestation: &Attestation,
        message: &[u8],
    ) -> Result<Header, DeviceError> {
        expect!(self.ask(&Request::Check(stream, *attestation, message)), Header)
    }

    fn check_all(
        &self,
        stream: StreamId,
        all: &[Claimed<'_>],
    ) -> Result<Vec<Result<Header, DeviceError>>, DeviceError> {
        // A message that no device attests is not sent, and is no obstacle for the others.
        let fits = |it: &Claimed<'_>| it.message.len() <= MESSAGE_LEN_MAX;
        let sent = all.iter().filter(|it| fits(it));
        let requests = sent.map(|it| Request::Check(stream, it.attestation, it.message));
        let mut answers = self.ask_all(requests)?.into_iter();
        let headers = all.iter().map(|it| match fits(it) {
            false => Err(DeviceError::PeerTooLong(it.message.len())),
            true => {
                let answer = answers.next().ok_or(DeviceError::Protocol("an answer is missing"));
                expect!(answer, Header)
            }
        });
        Ok(headers.collect())
    }

    fn sign(
        &self,
        stream: StreamId,
        counter: u64,
        message: &[u8],
    ) -> Result<[u8; SIGNATURE_LEN], DeviceError> {
        expect!(self.ask(&Request::Sign(stream, counter, message)), Signature)
    }

    fn reissue(&self, stream: StreamId, counter: u64) -> Result<Attestation, DeviceError> {
        expect!(self.ask(&Request::Reissue(stream, counter)), Attestation)
    }

    fn sent(&self, stream: StreamId) -> Result<Option<u64>, DeviceError> {
        expect!(self.ask(&Request::Sent(stream)), Sent)
    }

    fn position(
        &self,
        stream: StreamId,
        device: DeviceId,
    ) -> Result<Option<Position>, DeviceError> {
        expect!(self.ask(&Request::Position(stream, device)), Position)
    }

    fn vote(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        about: DeviceId,
    ) -> Result<Ballot, DeviceError> {
        expect!(self.ask(&Request::Vote(stream, newcomer, about)), Ballot)
    }

    fn admit(
        &mut self,
        stream: StreamId,
        newcomer: Start,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError> {
        done(self.ask(&Request::Admit(stream, newcomer, ballots.to_vec()))?)
    }

    fn synchronize(
        &mut self,
        stream: StreamId,
        peer: DeviceId,
        ballots: &[Ballot],
    ) -> Result<(), DeviceError> {
        done(self.ask(&Request::Synchronize(stream, peer, ballots.to_vec()))?)
    }
}

impl AppendOnly for Client {
    fn log_at(&self, place: u32) -> Result<Option<(LogId, End)>, DeviceError> {
        expect!(self.ask(&Request::LogAt(place)), Log)
    }

    fn open_log(&mut self, log: LogId) -> Result<(), DeviceError> {
        done(self.ask(&Request::OpenLog(log))?)
    }

    fn append(&mut self, log: LogId, entry: &Statement) -> Result<Attestation, DeviceError> {
        expect!(self.ask(&Request::Append(log, *entry)), Attestation)
    }

    fn append_all(
        &mut self,
        log: LogId,
        entries: &[Statement],
    ) -> Result<Vec<Attestation>, DeviceError> {
        attestations(self.ask_all(entries.iter().map(|entry| Request::Append(log, *entry)))?)
    }

    fn discard(&mut self) -> Result<(), DeviceError> {
        done(self.ask(&Request::Discard)?)
    }

    fn seal(&mut self, ends: &[(LogId, End)]) -> Result<(), DeviceError> {
        done(self.ask(&Request::Seal(ends.to_vec()))?)
    }

    fn sign_end(&self, log: LogId) -> Result<[u8; SIGNATURE_LEN], DeviceError> {
        expect!(self.ask(&Request::SignEnd(log)), Signature)
    }
}

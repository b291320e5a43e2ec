// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The words and values between a control process and a data process, and between two control
//! processes.
//!
//! - A value (SPEC §7.5) is taken if it is one, and is written again as it was read.
//! - Whatever is adopted and tried in whatever order: a value begins one session at each end at
//!   most, no two attempts share a secret, and only what was handed over begins one.
//! - A key daemon's message and a request to a tunnel are read as they are written, or refused.

use std::collections::BTreeSet;

use arbitrary::{Arbitrary, Unstructured};
use smt_esp_io::agreement::Message;
use smt_esp_io::control::Request;
use smt_handshake::{Adopter, EXPORTED_LEN, HANDOVER_LEN_MAX, Handover, HandoverTerms};
use smt_proto::WallTime;
use smt_proto::key_exchange::{
    Attempt, ClientRequest, Finished, Input, KeyExchange, KeyExchangeProvider,
};
use smt_record::{SessionSecrets, Side, Suite};
use zeroize::Zeroizing;

use crate::key_exchange::params;

/// A step of two adopters.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Step {
    /// A value is given to one of them, perhaps changed on its way.
    Adopt {
        /// Which value.
        number: u8,
        /// To the server's adopter, not the client's.
        to_server: bool,
        /// The side that it is made for is another than its adopter's.
        swapped: bool,
        /// A place and what is added there.
        change: Option<(u8, u8)>,
    },
    /// The client connects.
    Connect {
        /// An attempt after one that has failed.
        is_retry: bool,
        /// Which CONFIRM opens: the client's at the server, the server's at the client.
        confirms: (bool, bool),
    },
    /// Time passes.
    Wait {
        /// Seconds.
        seconds: u8,
    },
}

/// Checks one input: its first byte says what the others are.
pub fn check(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else {
        return;
    };
    match kind % 4 {
        0 => check_value(rest),
        1 => check_message(rest),
        2 => check_request(rest),
        _ => {
            if let Ok(steps) = Vec::<Step>::arbitrary_take_rest(Unstructured::new(rest)) {
                Ends::new().run(&steps);
            }
        }
    }
}

fn check_message(bytes: &[u8]) {
    if let Ok(message) = Message::parse(bytes) {
        let again = serde_json::to_vec(&message).expect("a message is written");
        assert_eq!(Message::parse(&again).ok(), Some(message));
    }
}

fn check_request(bytes: &[u8]) {
    if let Ok(request) = serde_json::from_slice::<Request>(bytes) {
        let written = serde_json::to_vec(&request).expect("a request is written");
        let again: Request = serde_json::from_slice(&written).expect("it is one");
        assert_eq!(serde_json::to_vec(&again).ok(), Some(written));
    }
}

fn check_value(bytes: &[u8]) {
    let read = Handover::from_bytes(bytes);
    assert_eq!(read.is_ok(), permitted(bytes).is_some());
    if let Ok(value) = read {
        assert_eq!(&value.to_bytes()[..], bytes);
        assert!(!format!("{value:?}").contains('\n'));
    }
}

/// `Some` if the specification permits these bytes as a value (SPEC [7.5-3]).
fn permitted(bytes: &[u8]) -> Option<()> {
    let name = bytes.get(113..)?;
    let suite = u16::from_be_bytes([bytes[6], bytes[7]]);
    let is_one = bytes.len() <= HANDOVER_LEN_MAX
        && bytes.starts_with(b"SMTH\x01")
        && bytes[5] <= 1
        && (0x1301..=0x1303).contains(&suite)
        && usize::from(bytes[112]) == name.len();
    let name = std::str::from_utf8(name).ok()?;
    (is_one && !name.is_empty() && !name.chars().any(char::is_control)).then_some(())
}

/// Two adopters, and what they have done.
struct Ends {
    client: Adopter,
    server: Adopter,
    now: u64,
    /// Names of values that a CONFIRM has used up, at each end.
    used_by_client: BTreeSet<Vec<u8>>,
    used_by_server: BTreeSet<Vec<u8>>,
    attempts: Vec<SessionSecrets>,
}

impl Ends {
    fn new() -> Self {
        let adopter = || Adopter::new().expect("the system gives random bytes");
        Self {
            client: adopter(),
            server: adopter(),
            now: 1_000_000,
            used_by_client: BTreeSet::new(),
            used_by_server: BTreeSet::new(),
            attempts: Vec::new(),
        }
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps.iter().take(64) {
            match *step {
                Step::Adopt { number, to_server, swapped, change } => {
                    self.adopt(number, to_server, swapped, change)
                }
                Step::Connect { is_retry, confirms } => self.connect(is_retry, confirms),
                Step::Wait { seconds } => self.now += u64::from(seconds),
            }
        }
    }

    fn adopt(&self, number: u8, to_server: bool, swapped: bool, change: Option<(u8, u8)>) {
        let terms = HandoverTerms {
            client: self.client.id(),
            server: self.server.id(),
            suite: Suite::Aes128Gcm,
            valid_until: WallTime::from_secs(1_000_060),
            number: number.into(),
        };
        let (side, adopter) = match to_server {
            true => (Side::Server, &self.server),
            false => (Side::Client, &self.client),
        };
        let side = if swapped { side.peer() } else { side };
        let exported = Zeroizing::new([number; EXPORTED_LEN]);
        let value = Handover::new(side, terms, "peer", None, &exported).expect("a name");
        let mut bytes = value.to_bytes();
        if let Some((at, add)) = change {
            let at = usize::from(at) % bytes.len();
            bytes[at] = bytes[at].wrapping_add(add);
        }
        let Ok(value) = Handover::from_bytes(&bytes) else {
            return;
        };
        let now = WallTime::from_secs(self.now);
        if adopter.adopt(&value, now).is_ok() {
            assert_eq!(value.terms().adopter(value.side()), adopter.id());
            assert!(value.terms().valid_until > now);
            assert!(adopter.adopt(&value, now).is_err(), "it was adopted twice");
        }
    }

    fn connect(&mut self, is_retry: bool, confirms: (bool, bool)) {
        let wall = Some(WallTime::from_secs(self.now));
        let request = ClientRequest { server_name: "peer", wall, is_retry };
        let Ok(attempt) = self.client.client(request) else {
            return;
        };
        let name = attempt.key.as_ref().expect("it names a key").name.clone();
        let offer = params(1, &attempt);
        let Ok(answer) = self.server.server(&offer, wall) else {
            return;
        };
        assert!(!self.used_by_server.contains(&name), "a value is used up");
        let (mut at_client, mut at_server) = (attempt, answer);
        let Some((client, server)) = played(&mut at_client, &mut at_server, &offer) else {
            return;
        };
        for secrets in [&client.secrets, &server.secrets] {
            assert!(!self.attempts.iter().any(|other| other == secrets));
        }
        if confirms.0 && at_server.exchange.confirmed().is_ok() {
            assert!(self.used_by_server.insert(name.clone()), "a second session");
        }
        if confirms.1 && at_client.exchange.confirmed().is_ok() {
            assert!(self.used_by_client.insert(name), "a second session");
        }
        self.attempts.extend([client.secrets, server.secrets]);
    }
}

/// All three flights.
fn played(
    client: &mut Attempt,
    server: &mut Attempt,
    offer: &[u8],
) -> Option<(Finished, Finished)> {
    let answer = params(2, server);
    let begin = |exchange: &mut dyn KeyExchange, own_params: &[u8]| {
        let begun = exchange.step(Input::Begin { own_params, early: &[] });
        assert!(begun.is_ok(), "an exchange does not begin");
    };
    begin(&mut *client.exchange, offer);
    begin(&mut *server.exchange, &answer);
    let flight = |number, params| Input::Flight { number, params, bytes: &[] };
    server.exchange.step(flight(1, offer)).ok()?;
    let at_client = client.exchange.step(flight(2, &answer)).ok()?;
    let at_server = server.exchange.step(flight(3, &[])).ok()?;
    Some((at_client.finished?, at_server.finished?))
}

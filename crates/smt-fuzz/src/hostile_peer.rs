// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An endpoint whose peer has the keys and keeps no rule (SPEC §8: violations are counted, no
//! effect).
//!
//! 1. A session of the plaintext version comes to life, so that everything opens that has the form
//!    of a record or control packet (SPEC §14).
//! 2. The input is what the peer then sends: `Said` control packets, `Sealed` messages,
//!    garbage; and what the victim's application does meanwhile.
//! 3. Then the peer is silent for ever: every call ends, the session dies, nothing is held.

mod content;
mod said;
mod sealed;
mod victim;

use std::time::Duration;

use arbitrary::Arbitrary;

use crate::world::{Forgery, Settings};
use said::Said;
use sealed::Sealed;
use victim::Victim;

/// The victim's configuration, and the steps of the case.
#[derive(Arbitrary, Debug)]
pub struct Case {
    settings: Settings,
    is_client: bool,
    steps: Vec<Step>,
}

/// One thing that happens. Numbers of any size name one of the things that exist.
#[derive(Arbitrary, Debug)]
enum Step {
    /// The peer sends a control packet.
    Say(Said, Option<Forgery>),
    /// The peer sends a part of a message.
    Send(Sealed, Option<Forgery>),
    /// The peer sends bytes.
    Inject(Vec<u8>),
    /// Time passes, in milliseconds.
    Wait(u8),
    /// The victim's application makes a call.
    Call { size: u16, has_deadline: bool },
    /// It sends a one-way message.
    OneWay { size: u16 },
    /// It gives one of them up.
    Cancel(u8),
    /// It makes a call in parts.
    CallInParts { size: u16, marks: u8 },
    /// It sends a part of a call.
    SendPart { which: u8, size: u16, more: bool },
    /// It takes the parts of a call that have come.
    TakeParts { which: u8 },
    /// It replies to a request.
    Reply { which: u8, size: u16 },
    /// It refuses one.
    Abort { which: u8 },
    /// It closes the session.
    Close,
    /// The peer sends a part of a message, and the network leaves only the header of it, or makes
    /// one up.
    Trim(Sealed, Option<Forgery>),
}

/// Runs all steps, and the silence after them.
pub fn check(case: &Case) {
    let mut victim = Victim::new(&case.settings, case.is_client);
    for step in case.steps.iter().take(STEPS_MAX) {
        run(&mut victim, step);
    }
    victim.finish();
}

fn run(victim: &mut Victim, step: &Step) {
    match step {
        Step::Say(said, forgery) => {
            let datagram = said.datagram(victim);
            victim.receive(datagram, forgery.as_ref());
        }
        Step::Send(sealed, forgery) => {
            let datagram = sealed.datagram(victim);
            victim.receive(datagram, forgery.as_ref());
        }
        Step::Inject(bytes) => victim.receive(bytes.clone(), None),
        Step::Wait(millis) => victim.wait(Duration::from_millis((*millis).into())),
        Step::Call { size, has_deadline } => victim.call((*size).into(), *has_deadline),
        Step::CallInParts { size, marks } => victim.call_in_parts((*size).into(), *marks),
        Step::SendPart { which, size, more } => {
            victim.send_part((*which).into(), (*size).into(), *more);
        }
        Step::TakeParts { which } => victim.take_parts((*which).into()),
        Step::OneWay { size } => victim.send_one_way((*size).into()),
        Step::Cancel(which) => victim.cancel((*which).into()),
        Step::Reply { which, size } => victim.reply((*which).into(), (*size).into()),
        Step::Abort { which } => victim.abort((*which).into()),
        Step::Close => victim.close(),
        Step::Trim(sealed, forgery) => {
            let datagram = sealed.datagram(victim);
            victim.receive_trimmed(datagram, forgery.as_ref());
        }
    }
}

/// More would only cost time.
const STEPS_MAX: usize = 300;

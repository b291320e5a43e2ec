// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One thing that happens.

use std::time::Duration;

use arbitrary::Arbitrary;
use smt_wire::AbortCode;

use super::made_up::MadeUp;
use super::size::Size;
use super::trimming::Trimming;
use crate::world::{Datagram, Forgery, HasParts, Kind, Plan, STRANGER, World, address_of};

/// One thing that happens. Numbers of any size name one of the things that exist.
#[derive(Arbitrary, Debug)]
pub(super) enum Step {
    /// Time passes and nothing arrives.
    Wait(Span),
    /// An honest network for a while.
    Run(Span),
    /// The oldest datagrams arrive in order.
    Arrive(u8),
    /// One datagram arrives before others.
    ArriveOne(u8),
    /// It arrives, and will again.
    ArriveTwice(u8),
    /// It never arrives.
    Drop(u8),
    /// Two change places.
    Swap(u8, u8),
    /// It is changed on its way.
    Change(u8, Forgery),
    /// An earlier datagram arrives once more, changed.
    Replay(u16, Vec<Forgery>),
    /// An earlier datagram goes back to its sender, changed.
    Reflect(u16, Vec<Forgery>),
    /// An earlier datagram comes from an address to which no node has sent.
    Move(u16, Vec<Forgery>),
    /// The bytes of two earlier datagrams come as one.
    Join(u16, u16),
    /// Bytes that the input made up arrive.
    Inject(MadeUp),
    /// An application makes a call.
    Call { by_server: bool, size: Size, plan: Answering, deadline: Option<Span> },
    /// An application makes many small calls at once, and perhaps no answer comes yet.
    Burst { by_server: bool, count: u8, is_held: bool },
    /// An application sends a one-way message.
    OneWay { by_server: bool, size: Size },
    /// An application makes a call in parts, whose request is answered by a later step.
    CallInParts { by_server: bool, size: Size, of_request: bool, of_reply: bool },
    /// An application sends a part of one.
    SendPart { which: u8, of_reply: bool, size: Size, more: bool },
    /// An application takes the parts that have come.
    TakeParts { which: u8, of_reply: bool },
    /// An application gives a message up.
    Cancel(u8),
    /// An application answers a request that it had put aside.
    Answer(u8, Answering),
    /// A host reports that the peer cannot be reached.
    Unreachable { of_server: bool },
    /// An application closes its session.
    Close { by_server: bool },
    /// The client connects, if it has no session.
    Connect,
    /// A switch leaves only the beginning of a packet.
    Trim(Trimming),
}

impl Step {
    /// Lets it happen.
    pub(super) fn run(&self, world: &mut World) {
        match self {
            Self::Wait(span) => world.wait(span.duration()),
            Self::Run(span) => {
                world.run(span.duration(), |_| false);
            }
            Self::Arrive(count) => world.arrive_oldest(1 + usize::from(*count)),
            Self::ArriveOne(which) => {
                if let Some(datagram) = take(world, *which) {
                    world.arrive(&datagram);
                }
            }
            Self::ArriveTwice(which) => {
                if let Some(datagram) = take(world, *which) {
                    world.in_flight.push(datagram.clone());
                    world.arrive(&datagram);
                }
            }
            Self::Drop(which) => {
                take(world, *which);
            }
            Self::Swap(one, other) => {
                let count = world.in_flight.len();
                if count > 0 {
                    let places = [one, other].map(|which| usize::from(*which) % count);
                    world.in_flight.swap(places[0], places[1]);
                }
            }
            Self::Change(which, forgery) => {
                if let Some(mut datagram) = take(world, *which) {
                    world.change(&mut datagram.bytes, std::slice::from_ref(forgery));
                    world.in_flight.insert(0, datagram);
                }
            }
            Self::Replay(..) | Self::Reflect(..) | Self::Move(..) | Self::Join(..) => {
                if let Some(datagram) = self.forged(world) {
                    world.arrive(&datagram);
                }
            }
            Self::Inject(made_up) => world.arrive(&made_up.datagram()),
            Self::Trim(trimming) => trimming.run(world),
            _ => self.act(world),
        }
    }

    /// An earlier datagram, as another host sends it.
    fn forged(&self, world: &World) -> Option<Datagram> {
        match self {
            Self::Replay(which, forgeries) => world.forge((*which).into(), forgeries),
            Self::Reflect(which, forgeries) => {
                let datagram = world.forge((*which).into(), forgeries)?;
                Some(Datagram { from: datagram.to, to: datagram.from, ..datagram })
            }
            Self::Move(which, forgeries) => {
                Some(Datagram { from: STRANGER, ..world.forge((*which).into(), forgeries)? })
            }
            Self::Join(one, other) => {
                let mut datagram = world.forge((*one).into(), &[])?;
                datagram.bytes.extend(world.forge((*other).into(), &[])?.bytes);
                Some(datagram)
            }
            _ => None,
        }
    }

    /// Carries out a step of applications and hosts.
    fn act(&self, world: &mut World) {
        match self {
            Self::Call { by_server, size, plan, deadline } => {
                let node = usize::from(*by_server);
                let kind = Kind::Request(plan.plan(world));
                let deadline = deadline.as_ref().map(Span::duration);
                world.send_message(node, size.bytes(world), kind, deadline);
            }
            Self::Burst { by_server, count, is_held } => {
                let node = usize::from(*by_server);
                let plan = if *is_held { Plan::Hold } else { Plan::Reply(10) };
                for _ in 0..*count {
                    world.send_message(node, 10, Kind::Request(plan), None);
                }
            }
            Self::OneWay { by_server, size } => {
                let node = usize::from(*by_server);
                world.send_message(node, size.bytes(world), Kind::OneWay, None);
            }
            Self::Cancel(which) => world.cancel((*which).into()),
            Self::Answer(which, answering) => {
                let plan = answering.plan(world);
                world.answer((*which).into(), plan);
            }
            Self::Unreachable { of_server } => {
                let of = usize::from(*of_server);
                let now = world.now;
                world.nodes[1 - of].endpoint.handle_unreachable(now, address_of(of));
                world.settle();
            }
            Self::Close { by_server } => world.close(usize::from(*by_server)),
            Self::Connect if world.newest(0).is_none() => world.connect(),
            _ => self.act_in_parts(world),
        }
    }

    /// Carries out a step of a call in parts.
    fn act_in_parts(&self, world: &mut World) {
        match self {
            Self::CallInParts { by_server, size, of_request, of_reply } => {
                let has_parts = HasParts { of_request: *of_request, of_reply: *of_reply };
                let (node, size) = (usize::from(*by_server), size.bytes(world));
                world.call_in_parts(node, size, Plan::Hold, has_parts);
            }
            Self::SendPart { which, of_reply, size, more } => {
                let size = size.bytes(world);
                world.send_part((*which).into(), *of_reply, size, *more);
            }
            Self::TakeParts { which, of_reply } => world.take_parts((*which).into(), *of_reply),
            _ => {}
        }
    }
}

/// Takes a datagram off its way.
pub(super) fn take(world: &mut World, which: u8) -> Option<Datagram> {
    let count = world.in_flight.len();
    (count > 0).then(|| world.in_flight.remove(usize::from(which) % count))
}

/// A time: each number is a quarter longer than the one before, from 10 us to 3 s.
#[derive(Arbitrary, Debug)]
pub(super) struct Span(u8);

impl Span {
    fn duration(&self) -> Duration {
        let micros = 10.0 * 1.25_f64.powi(i32::from(self.0 % 57));
        Duration::from_micros(micros as u64)
    }
}

/// The fate of a request.
#[derive(Arbitrary, Debug)]
pub(super) enum Answering {
    Reply(Size),
    Hold,
    Refuse,
    Drop,
    CallTooLarge,
    CallReplyTooLarge,
}

impl Answering {
    fn plan(&self, world: &World) -> Plan {
        match self {
            Self::Reply(size) => Plan::Reply(size.bytes(world)),
            Self::Hold => Plan::Hold,
            Self::Refuse => Plan::Abort(AbortCode::Overloaded),
            Self::Drop => Plan::Abort(AbortCode::Dropped),
            Self::CallTooLarge => Plan::Abort(AbortCode::TooLarge),
            Self::CallReplyTooLarge => Plan::Abort(AbortCode::ReplyTooLarge),
        }
    }
}

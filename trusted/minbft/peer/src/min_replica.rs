// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replica of `minbft` as a state machine of bytes and ticks.

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::Arc;

use minbft::output::ViewInfo;
use minbft::{Config, MinBft, PeerMessage};
use shared_ids::{ClientId, ReplicaId};
use smt_bft::{Message, Output};
use smt_device_client::{Device, DeviceError};
use smt_loopback::{Machine, Sender};
use smt_replica::{Group, Proof, Reply, Request, Service, SigningKey};
use smt_usig::{DeviceSignature, DeviceUsig, Introduction, Parties, Watch};

use crate::delivery::{Delivery, Frame, decode, encode};
use crate::device::{members, open_stream};
use crate::signed_request::{SignedRequest, Verification, Verifier};
use crate::timers::{Timers, ticks};

type Core<D> = MinBft<SignedRequest, DeviceUsig<D>>;
type Peers = PeerMessage<Introduction, SignedRequest, DeviceSignature>;
type Outcome<D> = minbft::Output<SignedRequest, DeviceUsig<D>>;

/// The terms of a replica that `minbft` leaves open.
pub struct Terms {
    /// The replica's number.
    pub own: u32,
    /// The key with which the host signs replies.
    pub reply_key: SigningKey,
    /// How often signatures of requests are verified.
    pub verification: Verification,
}

/// Why a replica does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The device does not open the group's stream.
    #[error("the device: {0}")]
    Device(#[from] DeviceError),
    /// The device has attested before.
    #[error("the device has attested in this stream: minbft cannot go on where it was")]
    Resumed,
    /// `minbft` refuses the USIG.
    #[error("minbft: {0}")]
    Core(anyhow::Error),
}

/// Numbers of a replica.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Numbers {
    /// The view in which it is, or that it leaves.
    pub view: u64,
    /// Batches that it has accepted.
    pub rounds: u64,
    /// Requests that it has executed.
    pub executed: u64,
    /// Errors that `minbft` has told.
    pub errors: u64,
}

/// A replica of `minbft`, its device, and the service.
pub struct MinReplica<S, D: Device> {
    core: Core<D>,
    watch: Watch<D>,
    verifier: Verifier,
    group: Arc<Group>,
    terms: Terms,
    service: S,
    delivery: Delivery,
    timers: Timers,
    /// The last answer of each client.
    answers: BTreeMap<u32, Reply>,
    /// Whether all devices are known. Statements come after that.
    is_ready: bool,
    numbers: Numbers,
    outputs: Vec<Output>,
}

impl<S: Service, D: Device> MinReplica<S, D> {
    /// Starts a replica with a device that has the group's secret.
    ///
    /// # Errors
    /// [`StartError`]
    pub fn new(
        group: Arc<Group>,
        mut device: D,
        service: S,
        terms: Terms,
    ) -> Result<Self, StartError> {
        let members = members(&group);
        let stream = open_stream(&mut device, &group, &members)?;
        if device.sent(stream)? != Some(0) {
            return Err(StartError::Resumed);
        }
        let usig = DeviceUsig::new(device, stream, Parties::OfGroup(members))?;
        let watch = usig.watch();
        let (core, first) =
            MinBft::new(usig, config(&group, terms.own)).map_err(StartError::Core)?;
        let own = terms.own;
        let mut replica = Self {
            core,
            watch,
            verifier: Verifier::new(group.clone(), terms.verification),
            delivery: Delivery::new((0..group.replicas).filter(|it| *it != own)),
            group,
            terms,
            service,
            timers: Timers::default(),
            answers: BTreeMap::new(),
            is_ready: false,
            numbers: Numbers::default(),
            outputs: Vec::new(),
        };
        replica.follow(first);
        Ok(replica)
    }

    /// The numbers of this moment.
    pub fn numbers(&self) -> Numbers {
        self.numbers
    }

    fn take_frame(&mut self, from: u32, frame: Frame) {
        // The first message introduces its sender's device. Statements are taken when all devices
        // are known: one that refers to a device which is not would be lost for ever.
        let limit = if self.is_ready { u64::MAX } else { 1 };
        let message = self.delivery.receive(from, frame, limit);
        let Some(message) = message.as_deref().and_then(decode::<Peers>) else {
            return;
        };
        let from = ReplicaId::from_u64(from.into());
        let outcome = self.verifier.during(|| self.core.handle_peer_message(from, message));
        self.follow(outcome);
    }

    fn take_request(&mut self, request: Request) {
        // The reply was lost. `minbft` does not answer again.
        if let Some(known) = self.answers.get(&request.client)
            && known.number == request.number
            && known.request == request.digest()
        {
            let reply = Message::Reply(known.clone()).encode();
            self.outputs.push(Output::Client(request.client, reply));
        } else if self.is_ready {
            let client = ClientId::from_u64(request.client.into());
            let call = || self.core.handle_client_message(client, SignedRequest(request));
            let outcome = self.verifier.during(call);
            self.follow(outcome);
        }
    }

    /// Does what `minbft` asks for.
    fn follow(&mut self, outcome: Outcome<D>) {
        self.is_ready |= outcome.ready_for_client_requests;
        self.numbers.errors += outcome.errors.len() as u64;
        self.numbers.rounds = outcome.round;
        self.numbers.view = match outcome.view_info {
            ViewInfo::InView(view) => view,
            ViewInfo::ViewChange { from, .. } => from,
        };
        outcome.timeout_requests.iter().for_each(|it| self.timers.take(it));
        for message in &outcome.broadcasts {
            let frame = self.delivery.send(encode(message));
            self.outputs.push(Output::Nodes(frame));
        }
        for (_, SignedRequest(request)) in Vec::from(outcome.responses) {
            self.execute(&request);
        }
    }

    /// Executes a request that is ordered, and answers it.
    fn execute(&mut self, request: &Request) {
        self.numbers.executed += 1;
        let reply = Reply {
            replica: self.terms.own,
            view: self.numbers.view,
            client: request.client,
            number: request.number,
            request: request.digest(),
            result: Ok(self.service.execute(&request.operation)),
            proof: Proof::default(),
        };
        let reply = reply.sign(&self.terms.reply_key);
        self.outputs.push(Output::Client(request.client, Message::Reply(reply.clone()).encode()));
        self.answers.insert(request.client, reply);
    }
}

impl<S: Service, D: Device> Machine for MinReplica<S, D> {
    type Error = DeviceError;

    fn receive(&mut self, from: Sender, bytes: &[u8]) {
        match from {
            Sender::Replica(from) => {
                let is_other = from < self.group.replicas && from != self.terms.own;
                if let Some(frame) = decode(bytes).filter(|_| is_other) {
                    self.take_frame(from, frame);
                }
            }
            Sender::Client => {
                if let Some(Message::Request(request)) = Message::decode(bytes) {
                    self.take_request(request);
                }
            }
        }
    }

    fn tick(&mut self) {
        for timeout in self.timers.tick() {
            let outcome = self.verifier.during(|| self.core.handle_timeout(timeout));
            self.follow(outcome);
        }
        let frames = self.delivery.tick().into_iter();
        self.outputs.extend(frames.map(|(to, frame)| Output::Node(to, frame)));
    }

    fn outputs(&mut self) -> Result<Vec<Output>, DeviceError> {
        match self.watch.failure() {
            Some(failure) => Err(failure),
            None => Ok(std::mem::take(&mut self.outputs)),
        }
    }
}

/// The sizes and timeouts of the group, as `minbft` names them.
fn config(group: &Group, own: u32) -> Config {
    let options = group.options;
    Config {
        n: NonZeroU64::new(group.replicas.into()).unwrap_or(NonZeroU64::MIN),
        t: group.faults() as u64,
        id: ReplicaId::from_u64(own.into()),
        batch_timeout: ticks(1),
        max_batch_size: NonZeroUsize::new(options.batch),
        initial_timeout_duration: ticks(options.timeout),
        checkpoint_period: NonZeroU64::new(options.interval).unwrap_or(NonZeroU64::MIN),
    }
}

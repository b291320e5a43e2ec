// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The way of other members' frames to a node.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use smt::blocking::Server;
use smt::{Bytes, Request};
use smt_attestation::DeviceId;
use smt_device_client::Device;

use crate::identity::{Binding, End, Peer, Proof, exporter};
use crate::link::{Own, lock};
use crate::operation::Attested;
use crate::wire::{Asked, Told};

/// The device at the other end of a session, kept with the session.
struct Bound(DeviceId);

/// A frame of the member at whose session it came; it is answered when the device has taken it.
pub(crate) struct Arrived {
    pub(crate) request: Request,
    body: Bytes,
}

impl Arrived {
    pub(crate) fn frame(&self) -> &[u8] {
        // One byte of kind, which was there.
        self.body.get(1..).unwrap_or_default()
    }

    pub(crate) fn answer(self, told: Told) {
        answer(self.request, told);
    }
}

/// A caller that has gone needs no answer.
fn answer(request: Request, told: Told) {
    let _ = request.reply(told.encode());
}

/// The thread that takes requests.
pub(crate) struct Listening<I> {
    pub(crate) own: Arc<Own<I>>,
    pub(crate) server: Server,
    pub(crate) peers: Vec<Peer>,
    pub(crate) arrived: SyncSender<Arrived>,
}

impl<I: Device> Listening<I> {
    /// Runs until the server is closed.
    pub(crate) fn run(self) {
        while let Some(request) = self.server.accept_request() {
            let body = request.body().clone();
            match Asked::decode(&body) {
                Some(Asked::Bind(proof)) => self.bind(request, &proof),
                Some(Asked::Frame(frame)) => {
                    let told = judge(&request, frame);
                    if told != Told::Taken {
                        answer(request, told);
                    } else if self.arrived.send(Arrived { request, body }).is_err() {
                        return;
                    }
                }
                None => answer(request, Told::Refused),
            }
        }
    }

    /// Binds a session to the device that has signed it, and signs it too.
    fn bind(&self, request: Request, proof: &Proof) {
        let Ok(exporter) = exporter(&request.session()) else {
            return;
        };
        let bound = self.peers.iter().find_map(|peer| {
            let ours = self.own.binding(exporter, End::Server, peer);
            let theirs = Binding { end: End::Client, own: ours.other, other: ours.own, ..ours };
            proof.verify(peer, &theirs).map(|_| ours)
        });
        let Some(ours) = bound else {
            return answer(request, Told::NotBound);
        };
        // Without a proof of its own the request fails, and the member tries again.
        let proof = lock(&self.own.identity).prove(&ours);
        if let Ok(proof) = proof {
            request.peer().data().insert(Bound(ours.other));
            let _ = request.reply(proof.0.to_vec());
        }
    }
}

/// Whether a frame comes from the device of its session. The MAC is for the device to verify.
fn judge(request: &Request, frame: &[u8]) -> Told {
    let Some(bound) = request.peer().data().get::<Bound>() else {
        return Told::NotBound;
    };
    let claim = Attested::decode(frame).and_then(|it| it.attestation.claim());
    if claim.is_some_and(|claim| claim.device == bound.0) { Told::Taken } else { Told::Refused }
}

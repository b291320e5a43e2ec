// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Authentic messages that have arrived before their turn.

use std::collections::BTreeMap;

use smt_attestation::{DeviceId, Epoch, Header, Position, Progress, StreamId};
use smt_device_client::Device;

/// Messages that may wait for an earlier one, of all streams together: reordering is bounded.
pub const HELD_MAX: usize = 64;
/// Messages of one sender among them: seven members that lie leave room for others.
pub const HELD_OF_SENDER_MAX: usize = 8;

type Place = (StreamId, DeviceId, Epoch, u64);

/// The messages that wait, each as its whole packet.
#[derive(Default)]
pub(crate) struct Held(BTreeMap<Place, Vec<u8>>);

impl Held {
    /// Keeps a message until its turn. False if there is no room: its sender sends it again. The
    /// first copy of a message is kept.
    pub(crate) fn keep(&mut self, header: &Header, packet: Vec<u8>, device: &impl Device) -> bool {
        if self.0.contains_key(&place_of(header)) {
            return true;
        }
        if !self.has_room(header.device) {
            self.forget_the_past(device);
        }
        let has_room = self.has_room(header.device);
        if has_room {
            self.put(header, packet);
        }
        has_room
    }

    /// Keeps a message that waited already.
    pub(crate) fn put(&mut self, header: &Header, packet: Vec<u8>) {
        self.0.insert(place_of(header), packet);
    }

    /// Takes the message with this counter out, if it waits.
    pub(crate) fn take(&mut self, sender: &Header, counter: u64) -> Option<Vec<u8>> {
        let (stream, device, epoch, _) = place_of(sender);
        self.0.remove(&(stream, device, epoch, counter))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    fn has_room(&self, sender: DeviceId) -> bool {
        let of_sender = self.0.keys().filter(|place| place.1 == sender).count();
        self.0.len() < HELD_MAX && of_sender < HELD_OF_SENDER_MAX
    }

    /// Lets go of messages whose turn never comes: of epochs that ended, and those that were taken
    /// meanwhile.
    fn forget_the_past(&mut self, device: &impl Device) {
        self.0.retain(|(stream, sender, epoch, counter), _| {
            let position = device.position(*stream, *sender).ok().flatten();
            position.is_some_and(|Position { epoch: admitted, progress }| {
                let is_ahead = matches!(progress, Progress::Taken(taken) if taken < *counter);
                admitted == *epoch && is_ahead
            })
        });
    }
}

fn place_of(header: &Header) -> Place {
    (header.stream, header.device, header.epoch, header.counter)
}

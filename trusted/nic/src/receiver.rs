// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receive side: what the kernel has not taken never reaches the host.

use std::cell::RefCell;
use std::rc::Rc;

use smt_attestation::{ATTESTATION_LEN, Attestation, Header, Refusal};
use smt_device_client::{Device, DeviceError};
use smt_nic::headers::Headers;
use smt_nic::receive::coalescing::{DataFields, Merge, Merged};

use crate::delivered::Delivered;
use crate::held::Held;
use crate::unmerged::{NATIVE_BYTES, without_data};

/// Messages of which some packets have arrived, at a time.
const MERGES_MAX: usize = 64;

/// The outcome of a packet that was not refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Received {
    /// No DATA packet natively over IP is in it: it carries no message, and was passed on as it is.
    Passed,
    /// Other packets of its message are missing. A message longer than a packet of IP can be, with
    /// its headers, never becomes whole, nor does one whose packet has others behind it.
    Incomplete,
    /// Its message is authentic, and waits for an earlier one.
    Waits,
    /// Messages were taken, as many as this, and passed on, in order, each with its attestation.
    Taken(u32),
    /// Its message was taken before, and was passed on once more. The counter of its attestation
    /// tells the host. The first copy may have come under a session or message id that is not its
    /// own, for no MAC covers them.
    Again,
}

/// Why a message was not passed on. It may be sent again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotTaken {
    /// It ends without an attestation, or DATA is or may be where it is not merged: behind another
    /// packet, in a fragment, or in a packet with impossible fields.
    #[error("the peer: a message without an attestation, or DATA in a packet that hides it")]
    Malformed,
    /// The kernel refuses it.
    #[error("the peer: the kernel refuses a message ({0:?})")]
    Refused(Refusal),
    /// Too many messages wait for earlier ones.
    #[error("a limit: too many messages wait for an earlier one")]
    NoRoom,
    /// The device does not answer, or has no such stream.
    #[error(transparent)]
    Device(DeviceError),
}

/// Merges the packets of a message in memory of the NIC, has the kernel take the message, and only
/// then hands it over. DATA packets are those of SMT natively over IP (SPEC §4, §15.2), and the
/// last 64 bytes of a message are its attestation.
pub struct Receiver<D> {
    device: Rc<RefCell<D>>,
    smt_protocol: u8,
    /// The oldest first.
    merges: Vec<Merge>,
    held: Held,
    delivered: Delivered,
}

impl<D: Device> Receiver<D> {
    /// A receiver by a device, where SMT has the IP protocol number `smt_protocol`.
    #[must_use]
    pub fn new(device: Rc<RefCell<D>>, smt_protocol: u8) -> Self {
        let (held, delivered) = (Held::default(), Delivered::default());
        Self { device, smt_protocol, merges: Vec::new(), held, delivered }
    }

    /// Takes a packet from the wire, from its IP header on. All that the host may see goes to
    /// `deliver`, which is [`smt_nic::Nic::receive`]: whole messages, each as one packet, and
    /// packets in which no DATA can be.
    ///
    /// # Errors
    /// Any [`NotTaken`]. Nothing was delivered then.
    pub fn receive(
        &mut self,
        packet: &[u8],
        deliver: &mut impl FnMut(&[u8]),
    ) -> Result<Received, NotTaken> {
        let headers = Headers::parse(packet, self.smt_protocol);
        let Some(fresh) = headers.and_then(|headers| Merge::begin(packet, &headers)) else {
            deliver(without_data(packet, self.smt_protocol).ok_or(NotTaken::Malformed)?);
            return Ok(Received::Passed);
        };
        let Some(merge) = self.merged(fresh).filter(|merge| merge.stream_part().offset == 0) else {
            return Ok(Received::Incomplete);
        };
        let packet = merge.into_packet();
        if !self.is_whole(&packet) {
            return Ok(Received::Incomplete);
        }
        self.take(packet, deliver)
    }

    /// How many messages wait for earlier ones.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.held.len()
    }

    /// Whether a packet that begins a message has all of it, and nothing behind it. The MAC decides
    /// whether the message is genuine.
    fn is_whole(&self, packet: &[u8]) -> bool {
        let headers = Headers::parse(packet, self.smt_protocol);
        let whole = headers.and_then(|headers| {
            let fields = DataFields::read(packet, &headers)?;
            let datagram = packet.len() - headers.transport_at - NATIVE_BYTES;
            let is_alone = fields.length == 0 || usize::from(fields.length) == datagram;
            let message = packet.len() - headers.payload_at;
            Some(is_alone && fields.message_length as usize == message)
        });
        whole == Some(true)
    }

    /// Adds a packet to those of its message, and returns them when no more can follow.
    fn merged(&mut self, fresh: Merge) -> Option<Merge> {
        let place = self.merges.iter().position(|it| it.is_of_message(&fresh));
        let merge = match place.map(|place| self.merges.remove(place)) {
            None => fresh,
            Some(mut before) => match before.append(&fresh) {
                Merged::Open => before,
                Merged::Closed => return Some(before),
                // The packets before it are lost: the message begins anew with its next copy.
                Merged::No => fresh,
            },
        };
        if !merge.may_go_on() {
            return Some(merge);
        }
        if self.merges.len() == MERGES_MAX {
            self.merges.remove(0);
        }
        self.merges.push(merge);
        None
    }

    fn take(
        &mut self,
        packet: Vec<u8>,
        deliver: &mut impl FnMut(&[u8]),
    ) -> Result<Received, NotTaken> {
        let (header, attestation) = match self.accept(&packet) {
            Ok(taken) => taken,
            Err(NotTaken::Refused(Refusal::Gap { expected })) => {
                let header = self.hold(packet)?;
                // One that waits may be due: the device had no answer when its turn came.
                return Ok(match self.release(&header, expected, deliver) {
                    0 => Received::Waits,
                    count => Received::Taken(count),
                });
            }
            Err(NotTaken::Refused(Refusal::Duplicate)) => {
                return self.deliver_again(&packet, deliver);
            }
            Err(why) => return Err(why),
        };
        self.held.take(&header, header.counter);
        self.delivered.add(&header, attestation);
        deliver(&packet);
        let next = header.counter.saturating_add(1);
        Ok(Received::Taken(1 + self.release(&header, next, deliver)))
    }

    /// Passes a copy of a message on that the host has got, if it is one of the last. A network
    /// that changes the headers of the first copy would otherwise keep the genuine one away.
    fn deliver_again(
        &self,
        packet: &[u8],
        deliver: &mut impl FnMut(&[u8]),
    ) -> Result<Received, NotTaken> {
        // A duplicate is told only of a message that is authentic.
        let (attestation, _) = self.parts(packet)?;
        if !self.delivered.has(&attestation) {
            return Err(NotTaken::Refused(Refusal::Duplicate));
        }
        deliver(packet);
        Ok(Received::Again)
    }

    /// Passes on the messages of a sender that have waited for their turn, from a counter on, and
    /// counts them.
    fn release(&mut self, sender: &Header, first: u64, deliver: &mut impl FnMut(&[u8])) -> u32 {
        let mut count = 0;
        for counter in first..=u64::MAX {
            let Some(packet) = self.held.take(sender, counter) else {
                break;
            };
            // The kernel judges it once more: only its turn has come since.
            match self.accept(&packet) {
                Ok((header, attestation)) => {
                    self.delivered.add(&header, attestation);
                    deliver(&packet);
                    count += 1;
                }
                Err(NotTaken::Device(_)) => {
                    // The device may answer the next time.
                    self.held.put(&Header { counter, ..*sender }, packet);
                    break;
                }
                Err(_) => break,
            }
        }
        count
    }

    /// A gap is told only of a message that is authentic: a forged one takes no room.
    fn hold(&mut self, packet: Vec<u8>) -> Result<Header, NotTaken> {
        let (attestation, _) = self.parts(&packet)?;
        let header = attestation.claim().ok_or(NotTaken::Malformed)?;
        let is_kept = self.held.keep(&header, packet, &*self.device.borrow());
        if is_kept { Ok(header) } else { Err(NotTaken::NoRoom) }
    }

    /// Has the kernel take a message.
    fn accept(&self, packet: &[u8]) -> Result<(Header, Attestation), NotTaken> {
        let (attestation, message) = self.parts(packet)?;
        let stream = attestation.claim().ok_or(NotTaken::Malformed)?.stream;
        let accepted = self.device.borrow_mut().accept(stream, &attestation, message);
        let header = accepted.map_err(|why| match why {
            DeviceError::Refused(refusal) => NotTaken::Refused(refusal),
            other => NotTaken::Device(other),
        })?;
        Ok((header, attestation))
    }

    /// The attestation at the end of a packet, and the message before it.
    fn parts<'p>(&self, packet: &'p [u8]) -> Result<(Attestation, &'p [u8]), NotTaken> {
        let headers = Headers::parse(packet, self.smt_protocol).ok_or(NotTaken::Malformed)?;
        let payload = &packet[headers.payload_at..];
        let parts = payload.split_last_chunk::<ATTESTATION_LEN>();
        let (message, attestation) = parts.ok_or(NotTaken::Malformed)?;
        Ok((Attestation(*attestation), message))
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that quinn has left unsealed are sealed before they leave.
//!
//! quinn writes them into the datagrams of one buffer in the order in which it has numbered them; a
//! packet with a short header is the last of its datagram. Each must be found there with its mark:
//! if one is not, the whole buffer is dropped, for it would leave in the clear.

use std::ops::Range;

use smt_nic::quic::{Batch, Handle, NotSealed, QuicEngine};

use crate::link::Link;
use crate::mark::MarkSecret;
use crate::notes::Unsealed;

/// Packets of a buffer that the engine seals with one call: one behind the other, of one length but
/// the last, of one key phase.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Run {
    pub(crate) range: Range<usize>,
    pub(crate) packets: Vec<Unsealed>,
}

/// A packet that quinn has left unsealed is not in its buffer, or its key may seal no more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Unsealable;

/// Finds the unsealed packets in the datagrams of a buffer.
pub(crate) fn runs(
    secret: &MarkSecret,
    buffer: &[u8],
    stride: usize,
    unsealed: &[Unsealed],
) -> Result<Vec<Run>, Unsealable> {
    let mut runs: Vec<Run> = Vec::new();
    let mut left = unsealed.iter().copied().peekable();
    let mut end = 0;
    for datagram in buffer.chunks(stride.max(1)) {
        end += datagram.len();
        let is_here = |packet: &Unsealed| {
            packet.length <= datagram.len() && secret.is_at_end(datagram, packet.marked())
        };
        let Some(packet) = left.next_if(is_here) else {
            continue;
        };
        let range = end - packet.length..end;
        match runs.last_mut().filter(|run| run.takes(&range, &packet)) {
            Some(run) => {
                run.range.end = range.end;
                run.packets.push(packet);
            }
            None => runs.push(Run { range, packets: vec![packet] }),
        }
    }
    match left.next() {
        None => Ok(runs),
        Some(_) => Err(Unsealable),
    }
}

/// Whether the first of these packets is in a buffer.
pub(crate) fn begins_in(
    secret: &MarkSecret,
    buffer: &[u8],
    stride: usize,
    unsealed: &[Unsealed],
) -> bool {
    let Some(first) = unsealed.first() else {
        return false;
    };
    let mut datagrams = buffer.chunks(stride.max(1));
    datagrams.any(|datagram| secret.is_at_end(datagram, first.marked()))
}

impl Run {
    /// Whether a packet continues it: behind a shorter one there is none.
    fn takes(&self, range: &Range<usize>, packet: &Unsealed) -> bool {
        let (first, last) = (&self.packets[0], &self.packets[self.packets.len() - 1]);
        range.start == self.range.end
            && last.length == first.length
            && packet.length <= first.length
            && (packet.generation, packet.id_length) == (first.generation, first.id_length)
    }

    /// Seals it by the engine. Returns whether it did: else nothing has changed.
    ///
    /// # Errors
    /// The key has sealed as many packets as it may (RFC 9001 §6.6): no other may seal them either.
    pub(crate) fn seal(
        &self,
        engine: &mut QuicEngine,
        handle: Handle,
        buffer: &mut [u8],
    ) -> Result<bool, Unsealable> {
        let numbers: Vec<u64> = self.packets.iter().map(|packet| packet.number).collect();
        let mut batch = Batch {
            packets: &mut buffer[self.range.clone()],
            stride: self.packets[0].length,
            id_length: self.packets[0].id_length,
            numbers: &numbers,
        };
        match engine.seal(handle, &mut batch) {
            Ok(()) => Ok(true),
            Err(NotSealed::ConfidentialityLimit) => Err(Unsealable),
            Err(_) => Ok(false),
        }
    }

    /// Seals it by the library's keys of its phase. Returns whether they are there.
    pub(crate) fn seal_in_software(&self, link: &Link, buffer: &mut [u8]) -> bool {
        let notes = link.notes();
        let generation = self.packets[0].generation;
        let (Some(phase), Some(header)) = (notes.phase(generation), &notes.header) else {
            return false;
        };
        let stride = self.packets[0].length;
        let packets = buffer[self.range.clone()].chunks_mut(stride);
        for (bytes, packet) in packets.zip(&self.packets) {
            let number_at = 1 + packet.id_length;
            let number_bytes = usize::from(bytes[0] & 3) + 1;
            let key = &phase.local_of_library;
            key.encrypt(packet.number, bytes, number_at + number_bytes);
            header.local_of_library.encrypt(number_at, bytes);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn packet(number: u64, length: usize) -> Unsealed {
        Unsealed { number, generation: 0, length, id_length: 8 }
    }

    /// A buffer of datagrams: bytes before the packet, and the packet.
    fn buffer(secret: &MarkSecret, packets: &[(usize, Unsealed)]) -> Vec<u8> {
        let datagrams = packets.iter().map(|(before, packet)| {
            let body = vec![0; before + packet.length - 16];
            [body, secret.mark(packet.marked()).to_vec()].concat()
        });
        datagrams.flatten().collect()
    }

    #[test]
    fn packets_of_one_length_are_one_run_and_a_shorter_one_ends_it() {
        let secret = MarkSecret::random().unwrap();
        let packets = [(0, packet(1, 100)), (0, packet(2, 100)), (0, packet(4, 60))];
        let bytes = buffer(&secret, &packets);
        let unsealed: Vec<Unsealed> = packets.iter().map(|(_, packet)| *packet).collect();
        let found = runs(&secret, &bytes, 100, &unsealed).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].range.clone(), found[0].packets.len()), (0..260, 3));
    }

    #[test]
    fn a_packet_behind_others_in_its_datagram_is_a_run_of_its_own() {
        let secret = MarkSecret::random().unwrap();
        let packets = [(40, packet(1, 60)), (0, packet(2, 100))];
        let bytes = buffer(&secret, &packets);
        let unsealed: Vec<Unsealed> = packets.iter().map(|(_, packet)| *packet).collect();
        let found = runs(&secret, &bytes, 100, &unsealed).unwrap();
        let ranges: Vec<_> = found.into_iter().map(|run| run.range).collect();
        assert_eq!(ranges, [40..100, 100..200]);
    }

    #[test]
    fn a_buffer_in_which_an_unsealed_packet_is_not_found_is_refused() {
        let secret = MarkSecret::random().unwrap();
        let mut bytes = buffer(&secret, &[(0, packet(1, 100))]);
        let unsealed = [packet(1, 100), packet(2, 100)];
        assert_eq!(runs(&secret, &bytes, 100, &unsealed), Err(Unsealable));
        bytes[99] ^= 1;
        let unsealed = [packet(1, 100)];
        assert_eq!(runs(&secret, &bytes, 100, &unsealed), Err(Unsealable));
    }
}

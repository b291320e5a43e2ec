// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host with a device of the ESP engine: one transmit queue, and queues for what arrives.

use smt_nic::completion::{Completion, Owner, Status};
use smt_nic::context_memory::ContextLimits;
use smt_nic::descriptor::{ContextId, SegmentWork, Work};
use smt_nic::esp::{EspEngine, EspTableError};
use smt_nic::receive::queue::{
    BufferDescriptor, RECEIVE_COMPLETION_BYTES, ReceiveCompletion, UnwrappedBy,
};
use smt_nic::{HostMemory, Nic, NicConfig, Ring};

use super::software::Agreed;
use crate::support::Host;

const QUEUES: u16 = 4;
const BUFFER: u32 = 65_536;
const ENTRIES: u32 = 32;

/// The host and its device.
pub(super) struct EspHost {
    host: Host,
    pub(super) nic: Nic<EspEngine>,
    transmit: u16,
    receive: Vec<Receive>,
}

struct Receive {
    completions: u64,
    buffers: Vec<u64>,
    read: u64,
}

/// The contents of a buffer, as the host finds them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Arrival {
    pub(super) packet: Vec<u8>,
    pub(super) packets: u16,
    /// The mark: the association by which the device has opened it, or 0.
    pub(super) spi: u32,
    pub(super) queue: u16,
}

impl EspHost {
    pub(super) fn new() -> Self {
        Self::with(16, QUEUES)
    }

    /// A device that only sends.
    pub(super) fn sender() -> Self {
        Self::with(16, 0)
    }

    /// A device with room for so many associations in each direction, and so many receive queues.
    pub(super) fn with(associations: usize, queues: u16) -> Self {
        let config = NicConfig {
            contexts: ContextLimits {
                contexts_max: associations,
                cached_max: 1,
            },
            associations_max: associations,
            ..NicConfig::default()
        };
        let (mut host, mut nic) = (Host::default(), Nic::new(config, EspEngine));
        let transmit = host.add_queue(&mut nic, 16);
        let receive = (0..queues).map(|_| add_receive_queue(&mut host, &mut nic));
        let receive = receive.collect();
        Self {
            host,
            nic,
            transmit,
            receive,
        }
    }

    /// Does one piece of work: its status, and the packets that left for it.
    pub(super) fn work(&mut self, work: Work) -> (Status, Vec<Vec<u8>>) {
        self.host.post(&mut self.nic, self.transmit, work);
        let run = self.host.run(&mut self.nic, self.transmit);
        let [Completion { status, .. }] = run.completions[..] else {
            panic!("one completion for one piece of work");
        };
        (status, run.packets)
    }

    pub(super) fn add_outbound(&mut self, agreed: &Agreed) -> Status {
        self.create(agreed.context(), &agreed.block())
    }

    pub(super) fn create(&mut self, context: ContextId, block: &[u8; 64]) -> Status {
        let work = self.host.create(context, block);
        self.work(work).0
    }

    pub(super) fn add_inbound(&mut self, agreed: &Agreed) -> Result<(), EspTableError> {
        agreed.with_inbound(|association| self.nic.add_association(association))
    }

    /// Work that sends a segment.
    pub(super) fn segment(
        &mut self,
        context: Option<ContextId>,
        header: &[u8],
        payload: &[u8],
        stride: u16,
    ) -> SegmentWork {
        SegmentWork {
            context,
            checksums: true,
            header_bytes: header.len() as u16,
            stride,
            payload_bytes: payload.len() as u32,
            header: self.host.put(header),
            payload: self.host.put(payload),
        }
    }

    pub(super) fn send(
        &mut self,
        context: Option<ContextId>,
        header: &[u8],
        payload: &[u8],
        stride: u16,
    ) -> (Status, Vec<Vec<u8>>) {
        let work = self.segment(context, header, payload, stride);
        self.work(Work::Segment(work))
    }

    /// Takes packets from the wire and hands all over that waits.
    pub(super) fn receive(&mut self, packets: &[Vec<u8>]) -> Vec<Arrival> {
        for packet in packets {
            self.nic.receive(packet, &mut self.host);
        }
        let mut arrived = Vec::new();
        for queue in 0..self.receive.len() as u16 {
            self.nic.flush(queue, &mut self.host);
            self.read(queue, &mut arrived);
        }
        arrived
    }

    fn read(&mut self, queue: u16, arrived: &mut Vec<Arrival>) {
        let of = &mut self.receive[usize::from(queue)];
        loop {
            let place = of.read % u64::from(ENTRIES);
            let mut entry = [0; RECEIVE_COMPLETION_BYTES];
            let at = of.completions + place * entry.len() as u64;
            self.host.read(at, &mut entry).unwrap();
            let owner = Owner::of_entry(of.read, ENTRIES);
            let Some(completion) = ReceiveCompletion::parse(&entry, owner) else {
                return;
            };
            let mut packet = vec![0; completion.bytes as usize];
            let buffer = of.buffers[place as usize];
            self.host.read(buffer, &mut packet).unwrap();
            arrived.push(Arrival {
                packet,
                packets: completion.packets,
                spi: match completion.association {
                    Some(UnwrappedBy::Esp(spi)) => spi,
                    Some(UnwrappedBy::Psp(_)) | None => 0,
                },
                queue,
            });
            of.read += 1;
            let posted = of.read + u64::from(ENTRIES);
            self.nic.host_has_posted(queue, posted, of.read);
        }
    }
}

fn add_receive_queue(host: &mut Host, nic: &mut Nic<EspEngine>) -> Receive {
    let buffers = (0..ENTRIES).map(|_| host.put(&[0; BUFFER as usize]));
    let buffers: Vec<u64> = buffers.collect();
    let descriptors = buffers.iter().flat_map(|address| {
        let descriptor = BufferDescriptor {
            address: *address,
            bytes: BUFFER,
        };
        descriptor.to_bytes()
    });
    let descriptors: Vec<u8> = descriptors.collect();
    let ring = |address| Ring {
        address,
        entries: ENTRIES,
    };
    let descriptors = ring(host.put(&descriptors));
    let completions = host.put(&[0; RECEIVE_COMPLETION_BYTES * ENTRIES as usize]);
    let number = nic.add_receive_queue(descriptors, ring(completions));
    nic.host_has_posted(number, ENTRIES.into(), 0);
    Receive {
        completions,
        buffers,
        read: 0,
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host with a device: one transmit queue, and queues for what arrives.

use smt_nic::completion::{Completion, Owner, Status};
use smt_nic::context_memory::ContextLimits;
use smt_nic::descriptor::{ContextId, SegmentWork, Work};
use smt_nic::engine::Engine;
use smt_nic::receive::UnwrappedBy;
use smt_nic::receive::queue::{BufferDescriptor, RECEIVE_COMPLETION_BYTES, ReceiveCompletion};
use smt_nic::{HostMemory, Nic, NicConfig, Ring};

use crate::support::Host;

const BUFFER: u32 = 65_536;
const ENTRIES: u32 = 32;

/// The host and its device.
pub(crate) struct RingHost<E: Engine> {
    host: Host,
    pub(crate) nic: Nic<E>,
    transmit: u16,
    receive: Vec<Receive>,
    /// Whether the device computes checksums of the transport.
    pub(crate) checksums: bool,
}

struct Receive {
    completions: u64,
    buffers: Vec<u64>,
    read: u64,
}

/// The contents of a buffer, as the host finds them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Arrival {
    pub(crate) packet: Vec<u8>,
    pub(crate) packets: u16,
    /// The mark of ESP: the association by which the device has opened it, or 0.
    pub(crate) spi: u32,
    /// The mark of PSP.
    pub(crate) psp: Option<u32>,
    pub(crate) queue: u16,
}

impl<E: Engine> RingHost<E> {
    /// A device with room for so many associations in each direction, and so many receive queues.
    pub(crate) fn with_engine(engine: E, associations: usize, queues: u16) -> Self {
        let config = NicConfig {
            contexts: ContextLimits { contexts_max: associations, cached_max: 1 },
            associations_max: associations,
            ..NicConfig::default()
        };
        let (mut host, mut nic) = (Host::default(), Nic::new(config, engine));
        let transmit = host.add_queue(&mut nic, 16);
        let receive = (0..queues).map(|_| add_receive_queue(&mut host, &mut nic));
        let receive = receive.collect();
        Self { host, nic, transmit, receive, checksums: true }
    }

    /// Does one piece of work: its status, and the packets that left for it.
    pub(crate) fn work(&mut self, work: Work) -> (Status, Vec<Vec<u8>>) {
        self.host.post(&mut self.nic, self.transmit, work);
        let run = self.host.run(&mut self.nic, self.transmit);
        let [Completion { status, .. }] = run.completions[..] else {
            panic!("one completion for one piece of work");
        };
        (status, run.packets)
    }

    pub(crate) fn create(&mut self, context: ContextId, block: &[u8; 64]) -> Status {
        let work = self.host.create(context, block);
        self.work(work).0
    }

    /// Work that sends a segment.
    pub(crate) fn segment(
        &mut self,
        context: Option<ContextId>,
        header: &[u8],
        payload: &[u8],
        stride: u16,
    ) -> SegmentWork {
        SegmentWork {
            context,
            checksums: self.checksums,
            header_bytes: header.len() as u16,
            stride,
            payload_bytes: payload.len() as u32,
            header: self.host.put(header),
            payload: self.host.put(payload),
        }
    }

    pub(crate) fn send(
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
    pub(crate) fn receive(&mut self, packets: &[Vec<u8>]) -> Vec<Arrival> {
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
            let (spi, psp) = match completion.association {
                None => (0, None),
                Some(UnwrappedBy::Esp(spi)) => (spi, None),
                Some(UnwrappedBy::Psp(spi)) => (0, Some(spi)),
            };
            arrived.push(Arrival { packet, packets: completion.packets, spi, psp, queue });
            of.read += 1;
            let posted = of.read + u64::from(ENTRIES);
            self.nic.host_has_posted(queue, posted, of.read);
        }
    }
}

fn add_receive_queue<E: Engine>(host: &mut Host, nic: &mut Nic<E>) -> Receive {
    let buffers = (0..ENTRIES).map(|_| host.put(&[0; BUFFER as usize]));
    let buffers: Vec<u64> = buffers.collect();
    let descriptors = buffers.iter().flat_map(|address| {
        let descriptor = BufferDescriptor { address: *address, bytes: BUFFER };
        descriptor.to_bytes()
    });
    let descriptors: Vec<u8> = descriptors.collect();
    let ring = |address| Ring { address, entries: ENTRIES };
    let descriptors = ring(host.put(&descriptors));
    let completions = host.put(&[0; RECEIVE_COMPLETION_BYTES * ENTRIES as usize]);
    let number = nic.add_receive_queue(descriptors, ring(completions));
    nic.host_has_posted(number, ENTRIES.into(), 0);
    Receive { completions, buffers, read: 0 }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host: memory, rings in it, and the headers of packets.

use smt_nic::completion::{COMPLETION_BYTES, Completion, Owner};
use smt_nic::descriptor::{ContextId, DESCRIPTOR_BYTES, Descriptor, SegmentWork, Work};
use smt_nic::engine::{CONTEXT_BLOCK_BYTES, Engine};
use smt_nic::{DmaFault, HostMemory, Nic, Ring, Step};

/// The IP protocol number of SMT in tests.
pub(crate) const SMT: u8 = 253;

/// Memory from address 0 on, and what the host knows of its queues.
#[derive(Clone, Default)]
pub(crate) struct Host {
    pub(crate) memory: Vec<u8>,
    queues: Vec<HostQueue>,
}

#[derive(Clone)]
struct HostQueue {
    descriptors: Ring,
    completions: Ring,
    written: u64,
    read: u64,
}

impl HostMemory for Host {
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), DmaFault> {
        into.copy_from_slice(self.place(at, into.len())?);
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.place(at, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }
}

impl Host {
    fn place(&mut self, at: u64, bytes: usize) -> Result<&mut [u8], DmaFault> {
        let start = usize::try_from(at).map_err(|_| DmaFault { at })?;
        let end = start.checked_add(bytes).ok_or(DmaFault { at })?;
        self.memory.get_mut(start..end).ok_or(DmaFault { at })
    }

    /// Puts bytes into memory of their own, and returns their address.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> u64 {
        let at = self.memory.len() as u64;
        self.memory.extend_from_slice(bytes);
        at
    }

    /// Adds a queue whose rings have so many entries.
    pub(crate) fn add_queue<E: Engine>(&mut self, nic: &mut Nic<E>, entries: u32) -> u16 {
        self.add_queue_of_class(nic, 0, entries)
    }

    /// The same with a class of priority.
    pub(crate) fn add_queue_of_class<E: Engine>(
        &mut self,
        nic: &mut Nic<E>,
        class: u8,
        entries: u32,
    ) -> u16 {
        let mut ring =
            |bytes: usize| Ring { address: self.put(&vec![0; bytes * entries as usize]), entries };
        let descriptors = ring(DESCRIPTOR_BYTES);
        let completions = ring(COMPLETION_BYTES);
        self.queues.push(HostQueue { descriptors, completions, written: 0, read: 0 });
        nic.add_queue_of_class(class, descriptors, completions)
    }

    /// Writes a descriptor's bytes into the ring of a queue, and tells the device.
    pub(crate) fn post_bytes<E: Engine>(
        &mut self,
        nic: &mut Nic<E>,
        queue: u16,
        bytes: &[u8; DESCRIPTOR_BYTES],
    ) {
        let of = &mut self.queues[usize::from(queue)];
        let place = of.written % u64::from(of.descriptors.entries);
        let at = of.descriptors.address + place * DESCRIPTOR_BYTES as u64;
        of.written += 1;
        let written = of.written;
        self.write(at, bytes).unwrap();
        nic.host_has_written(queue, written);
    }

    pub(crate) fn post<E: Engine>(&mut self, nic: &mut Nic<E>, queue: u16, work: Work) {
        let cookie = self.queues[usize::from(queue)].written;
        let descriptor = Descriptor { work, cookie };
        self.post_bytes(nic, queue, &descriptor.to_bytes());
    }

    /// Work that makes a context of a block.
    pub(crate) fn create(&mut self, context: ContextId, block: &[u8; CONTEXT_BLOCK_BYTES]) -> Work {
        Work::Create { context, block: self.put(block) }
    }

    /// Work that sends a payload behind headers of IPv4.
    pub(crate) fn segment(
        &mut self,
        context: Option<ContextId>,
        payload: &[u8],
        stride: u16,
    ) -> Work {
        let header = header();
        Work::Segment(SegmentWork {
            context,
            checksums: true,
            header_bytes: header.len() as u16,
            stride,
            payload_bytes: payload.len() as u32,
            header: self.put(&header),
            payload: self.put(payload),
        })
    }

    /// Takes a completion from its ring, if there is a fresh one.
    pub(crate) fn completion<E: Engine>(
        &mut self,
        nic: &mut Nic<E>,
        queue: u16,
    ) -> Option<Completion> {
        let of = &mut self.queues[usize::from(queue)];
        let entries = of.completions.entries;
        let place = of.read % u64::from(entries);
        let at = of.completions.address + place * COMPLETION_BYTES as u64;
        let round = Owner::of_entry(of.read, entries);
        let mut bytes = [0; COMPLETION_BYTES];
        self.read(at, &mut bytes).unwrap();
        let completion = Completion::parse(&bytes, round)?;
        let of = &mut self.queues[usize::from(queue)];
        of.read += 1;
        nic.host_has_read(queue, of.read);
        Some(completion)
    }

    /// Turns a queue until it is idle, and reads its completions.
    pub(crate) fn run<E: Engine>(&mut self, nic: &mut Nic<E>, queue: u16) -> Run {
        let mut run = Run::default();
        loop {
            let packets = &mut run.packets;
            let step = nic.step(queue, self, &mut |packet| packets.push(packet.to_vec()));
            match step.unwrap() {
                Step::Idle | Step::Blocked => return run,
                Step::Fetched => {}
                Step::Executed(_) => run.completions.extend(self.completion(nic, queue)),
            }
        }
    }
}

/// The packets and completions of a queue that was turned until it was idle.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) packets: Vec<Vec<u8>>,
    pub(crate) completions: Vec<Completion>,
}

impl Run {
    /// The payloads of the packets, one behind the other.
    pub(crate) fn stream(&self) -> Vec<u8> {
        let bytes = header().len();
        let payloads = self.packets.iter().flat_map(|packet| &packet[bytes..]);
        payloads.copied().collect()
    }
}

/// Headers of IPv4 and of SMT's DATA (SPEC §3.3, §15.2).
pub(crate) fn header() -> Vec<u8> {
    let mut header = vec![0; 20 + 8 + 36];
    header[0] = 0x45;
    header[5] = 1;
    header[9] = SMT;
    header[20 + 12] = 0xB0;
    header[20 + 8..20 + 10].copy_from_slice(&[1, 1]);
    header
}

/// The context block of the TLS engine.
pub(crate) fn tls_block(
    suite: u16,
    key: &[u8],
    iv: [u8; 12],
    number: u64,
) -> [u8; CONTEXT_BLOCK_BYTES] {
    let mut block = [0; CONTEXT_BLOCK_BYTES];
    block[0] = smt_nic::tls::ENGINE;
    block[2..4].copy_from_slice(&suite.to_be_bytes());
    block[4..4 + key.len()].copy_from_slice(key);
    block[36..48].copy_from_slice(&iv);
    block[48..56].copy_from_slice(&number.to_be_bytes());
    block
}

/// A record of TLS with this plaintext, and room for its tag.
pub(crate) fn unsealed(plaintext: &[u8]) -> Vec<u8> {
    let mut record = vec![0x17, 3, 3];
    record.extend((plaintext.len() as u16 + 16).to_be_bytes());
    record.extend(plaintext);
    record.extend([0; 16]);
    record
}

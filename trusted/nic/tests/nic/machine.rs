// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host with a NIC whose device is a member of a group.

use std::cell::RefCell;
use std::rc::Rc;

use smt_attestation::{
    ATTESTATION_LEN, Algorithm, Attestation, DeviceId, Epoch, Group, GroupSecret, Member,
    SigningKey, Start, StreamId,
};
use smt_device_client::{Device, Library, SecretNumber};
use smt_nic::completion::{COMPLETION_BYTES, Status};
use smt_nic::descriptor::{ContextId, DESCRIPTOR_BYTES, Descriptor, SegmentWork, Work};
use smt_nic::receive::queue::{
    BUFFER_DESCRIPTOR_BYTES, BufferDescriptor, RECEIVE_COMPLETION_BYTES, ReceiveCompletion,
};
use smt_nic::tls::TlsEngine;
use smt_nic::{DmaFault, HostMemory, Nic, NicConfig, Ring, Step, completion};
use smt_trusted_nic::{AttestationEngine, NotTaken, Received, Receiver};

use crate::fault::Faulty;

pub(crate) const STREAM: StreamId = StreamId(1);
/// The context of the attested flow.
pub(crate) const FLOW: ContextId = ContextId(7);
/// The IP protocol number of SMT.
const SMT: u8 = 253;
/// Bytes of a receive buffer.
const BUFFER: usize = 65_535;

type TestDevice = Faulty<Library<2, 3, 16>>;

pub(crate) struct Machine {
    pub(crate) device: Rc<RefCell<TestDevice>>,
    pub(crate) receiver: Receiver<TestDevice>,
    /// Payloads that the host has found in its buffers.
    pub(crate) arrived: Vec<Vec<u8>>,
    nic: Nic<(TlsEngine, AttestationEngine<TestDevice>)>,
    memory: Memory,
    written: u64,
    message_id: u64,
    received: u64,
}

/// Memory from address 0 on: rings, one receive buffer, and what is sent.
#[derive(Default)]
struct Memory(Vec<u8>);

impl HostMemory for Memory {
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), DmaFault> {
        into.copy_from_slice(self.place(at, into.len())?);
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.place(at, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }
}

impl Memory {
    fn place(&mut self, at: u64, bytes: usize) -> Result<&mut [u8], DmaFault> {
        self.0.get_mut(at as usize..at as usize + bytes).ok_or(DmaFault { at })
    }

    fn put(&mut self, bytes: &[u8]) -> u64 {
        let at = self.0.len() as u64;
        self.0.extend_from_slice(bytes);
        at
    }
}

const DESCRIPTORS: u64 = 0;
const COMPLETIONS: u64 = DESCRIPTORS + DESCRIPTOR_BYTES as u64;
const BUFFERS: u64 = COMPLETIONS + COMPLETION_BYTES as u64;
const ARRIVALS: u64 = BUFFERS + BUFFER_DESCRIPTOR_BYTES as u64;
const BUFFER_AT: u64 = ARRIVALS + RECEIVE_COMPLETION_BYTES as u64;

impl Machine {
    pub(crate) fn new(device: u32) -> Self {
        let device = Rc::new(RefCell::new(start(device)));
        let engines = (TlsEngine, AttestationEngine::new(device.clone()));
        let mut nic = Nic::new(NicConfig::default(), engines);
        let ring = |address| Ring { address, entries: 1 };
        nic.add_queue(ring(DESCRIPTORS), ring(COMPLETIONS));
        nic.add_receive_queue(ring(BUFFERS), ring(ARRIVALS));
        let mut memory = Memory(vec![0; BUFFER_AT as usize + BUFFER]);
        let buffer = BufferDescriptor { address: BUFFER_AT, bytes: BUFFER as u32 };
        memory.write(BUFFERS, &buffer.to_bytes()).unwrap();
        let receiver = Receiver::new(device.clone(), SMT);
        let (arrived, written, message_id, received) = (Vec::new(), 0, 0, 0);
        Self { device, receiver, arrived, nic, memory, written, message_id, received }
    }

    pub(crate) fn create(&mut self, context: ContextId, block: &[u8; 64]) -> Status {
        let block = self.memory.put(block);
        self.execute(Work::Create { context, block }).1
    }

    /// Sends a message of the attested flow.
    pub(crate) fn send(&mut self, message: &[u8], stride: u16) -> Vec<Vec<u8>> {
        let payload = [message, &[0; ATTESTATION_LEN]].concat();
        self.message_id += 1;
        let (packets, status) = self.post(Some(FLOW), &payload, stride);
        assert_eq!(status, Status::Done);
        packets
    }

    /// Sends a payload that has its attestation, as the message before was sent.
    pub(crate) fn send_plain(&mut self, payload: &[u8], stride: u16) -> Vec<Vec<u8>> {
        self.post(None, payload, stride).0
    }

    pub(crate) fn post(
        &mut self,
        context: Option<ContextId>,
        payload: &[u8],
        stride: u16,
    ) -> (Vec<Vec<u8>>, Status) {
        let mut header = data_header(payload.len() as u32);
        header[28 + 20..28 + 28].copy_from_slice(&self.message_id.to_be_bytes());
        header[28 + 10..28 + 12].copy_from_slice(&stride.to_be_bytes());
        let (header_at, payload_at) = (self.memory.put(&header), self.memory.put(payload));
        self.execute(Work::Segment(SegmentWork {
            context,
            // Where TCP has its checksum, SMT has a part of its own header: MACs protect it.
            checksums: false,
            header_bytes: header.len() as u16,
            stride,
            payload_bytes: payload.len() as u32,
            header: header_at,
            payload: payload_at,
        }))
    }

    /// Has the NIC execute a descriptor, and returns its packets and its end.
    pub(crate) fn execute(&mut self, work: Work) -> (Vec<Vec<u8>>, Status) {
        let descriptor = Descriptor { work, cookie: 0 };
        self.memory.write(DESCRIPTORS, &descriptor.to_bytes()).unwrap();
        self.written += 1;
        self.nic.host_has_written(0, self.written);
        let mut packets = Vec::new();
        loop {
            let wire = &mut |packet: &[u8]| packets.push(packet.to_vec());
            if let Step::Executed(completion) = self.nic.step(0, &mut self.memory, wire).unwrap() {
                let completion::Completion { status, .. } = completion;
                self.nic.host_has_read(0, self.written);
                return (packets, status);
            }
        }
    }

    /// A packet comes from the wire, and the host looks into its buffer.
    pub(crate) fn receive(&mut self, packet: &[u8]) -> Result<Received, NotTaken> {
        let (nic, memory, received) = (&mut self.nic, &mut self.memory, &mut self.received);
        let arrived = &mut self.arrived;
        self.receiver.receive(packet, &mut |packet| {
            nic.host_has_posted(0, *received + 1, *received);
            nic.receive(packet, memory).expect("the device has queue 0");
            nic.flush(0, memory);
            let mut bytes = [0; RECEIVE_COMPLETION_BYTES];
            memory.read(ARRIVALS, &mut bytes).unwrap();
            let round = completion::Owner::of_entry(*received, 1);
            let arrival = ReceiveCompletion::parse(&bytes, round).expect("a packet was dropped");
            *received += 1;
            let header = data_header(0).len();
            let place = BUFFER_AT + header as u64;
            let mut payload = vec![0; arrival.bytes as usize - header];
            memory.read(place, &mut payload).unwrap();
            arrived.push(payload);
        })
    }
}

fn start(device: u32) -> TestDevice {
    let own = Start { device: DeviceId(device), epoch: Epoch(1), nonce: [0; 16] };
    let mut library = Library::start(own, SigningKey::new(&[device as u8; 32]));
    library.add_secret(SecretNumber(1), GroupSecret::new([5; 32])).unwrap();
    let members = [1, 2, 3].map(|it| Member { device: DeviceId(it), epoch: Epoch(1) });
    let algorithm = Algorithm::HmacSha256;
    let group = Group { stream: STREAM, algorithm, quorum: 1, members: &members };
    library.open(SecretNumber(1), &group).unwrap();
    Faulty { device: library, fails_after: None }
}

/// Headers of IPv4 and of SMT's DATA natively over it (SPEC §4.1, §15.2).
pub(crate) fn data_header(message_length: u32) -> Vec<u8> {
    let mut header = vec![0; 20 + 8 + 36];
    header[0] = 0x45;
    header[5] = 1;
    header[9] = SMT;
    header[20 + 12] = 0xB0;
    header[28..30].copy_from_slice(&[1, 1]);
    header[28 + 28..28 + 32].copy_from_slice(&message_length.to_be_bytes());
    header
}

/// A control packet or one of an unknown type, with its length (SPEC §3.1).
pub(crate) fn control(ty: u8) -> Vec<u8> {
    let mut packet = vec![0; 20 + 8 + 44];
    packet[0] = 0x45;
    packet[3] = 72;
    packet[9] = SMT;
    packet[20 + 12] = 0x50;
    (packet[28], packet[29], packet[28 + 7]) = (1, ty, 44);
    packet
}

/// The attestation at the end of a message that has arrived.
pub(crate) fn attestation_of(payload: &[u8]) -> Attestation {
    Attestation(*payload.last_chunk().unwrap())
}

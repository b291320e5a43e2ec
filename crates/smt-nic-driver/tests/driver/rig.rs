// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A device whose engine is watched and may fail, a driver before it, and messages for both.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use smt_carrier::{
    Batch, KeyHandle, KeyStore, Layout, Path, ReceivingFlow, ReceivingKey, Unsealed,
};
use smt_nic::context_memory::ContextLimits;
use smt_nic::engine::{BadContextBlock, ContextBlock, Engine, EngineError, Protected};
use smt_nic::tls::{TlsContext, TlsEngine};
use smt_nic::{Nic, NicConfig, Step};
use smt_nic_driver::{Driver, DriverConfig, NativePacket, NicKeys, OutgoingAddresses};
use smt_record::{AeadProvider, AwsLc, Suite};

/// Every nonce that the engine has used, with the plaintext under it.
#[derive(Clone, Debug, Default)]
pub(crate) struct NonceWatch(Arc<Mutex<Plaintexts>>);

/// Plaintexts by key and number.
type Plaintexts = BTreeMap<(Vec<u8>, u64), Vec<u8>>;

impl NonceWatch {
    /// Sees the records of a payload that is about to be sealed.
    fn see(&self, context: &WatchedContext, payload: &[u8]) {
        let mut seen = self.0.lock().unwrap();
        let mut rest = payload;
        for number in context.inner.number().unwrap().. {
            if rest.is_empty() {
                break;
            }
            let length = 5 + usize::from(u16::from_be_bytes([rest[3], rest[4]]));
            let (record, behind) = rest.split_at(length);
            let plaintext = record[5..length - 16].to_vec();
            let before = seen.entry((context.key.clone(), number));
            let before = before.or_insert_with(|| plaintext.clone());
            assert_eq!(before, &plaintext, "number {number} under two plaintexts");
            rest = behind;
        }
    }
}

/// The TLS engine, watched. Every `fails_each`th payload is refused; 0 refuses none.
#[derive(Clone, Debug)]
pub(crate) struct WatchedTls {
    watch: NonceWatch,
    fails_each: u64,
    protected: Arc<Mutex<u64>>,
}

#[derive(Clone, Debug)]
pub(crate) struct WatchedContext {
    inner: TlsContext,
    key: Vec<u8>,
}

impl Engine for WatchedTls {
    type Context = WatchedContext;

    fn create(&self, block: &ContextBlock) -> Result<WatchedContext, BadContextBlock> {
        Ok(WatchedContext { inner: TlsEngine.create(block)?, key: block.bytes()[2..48].to_vec() })
    }

    fn resync(&self, context: &mut WatchedContext, number: u64) {
        TlsEngine.resync(&mut context.inner, number);
    }

    fn protect(
        &self,
        context: &mut WatchedContext,
        payload: &mut [u8],
    ) -> Result<Protected, EngineError> {
        let mut protected = self.protected.lock().unwrap();
        *protected += 1;
        if self.fails_each > 0 && protected.is_multiple_of(self.fails_each) {
            return Err(EngineError::BadPayload);
        }
        self.watch.see(context, payload);
        TlsEngine.protect(&mut context.inner, payload)
    }
}

/// A device, its driver, and the packets that have left.
pub(crate) struct Rig {
    pub(crate) driver: Driver,
    pub(crate) nic: Nic<WatchedTls>,
    pub(crate) keys: Arc<NicKeys>,
    pub(crate) packets: Vec<Vec<u8>>,
    is_ipv6: bool,
}

/// The device of a rig.
#[derive(Clone, Copy)]
pub(crate) struct DeviceOptions {
    pub(crate) contexts_max: usize,
    pub(crate) fails_each: u64,
    pub(crate) is_ipv6: bool,
}

impl Default for DeviceOptions {
    fn default() -> Self {
        Self { contexts_max: 1_000, fails_each: 0, is_ipv6: false }
    }
}

impl Rig {
    pub(crate) fn new(config: DriverConfig, options: DeviceOptions) -> Self {
        let keys = NicKeys::new(1_000);
        let engine = WatchedTls {
            watch: NonceWatch::default(),
            fails_each: options.fails_each,
            protected: Arc::default(),
        };
        let contexts = ContextLimits { contexts_max: options.contexts_max, cached_max: 4 };
        let device = NicConfig { contexts, ..NicConfig::default() };
        let mut nic = Nic::new(device, engine);
        let driver = Driver::new(config, Arc::clone(&keys));
        driver.attach(&mut nic);
        Self { driver, nic, keys, packets: Vec::new(), is_ipv6: options.is_ipv6 }
    }

    fn addresses(&self) -> OutgoingAddresses {
        let [source, destination] = match self.is_ipv6 {
            false => ["192.0.2.1:7", "192.0.2.2:9"],
            true => ["[2001:db8::1]:7", "[2001:db8::2]:9"],
        };
        OutgoingAddresses {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        }
    }

    /// Posts a message that leaves at once.
    pub(crate) fn post(&mut self, message: &Message) {
        self.post_with_priority(message, 0);
    }

    /// The same with a priority, 0 to 7.
    pub(crate) fn post_with_priority(&mut self, message: &Message, priority: u8) {
        let addresses = self.addresses();
        let batch = Batch { priority, ..message.batch() };
        self.driver.post(&mut self.nic, &batch, addresses).unwrap();
    }

    /// Posts a message that leaves in two parts.
    pub(crate) fn post_in_parts(&mut self, message: &Message) {
        message.parts().iter().for_each(|part| self.post(part));
    }

    /// Takes one step of a queue. Returns whether there was something to do.
    pub(crate) fn step(&mut self, queue: u16) -> bool {
        let packets = &mut self.packets;
        let mut wire = |packet: &[u8]| packets.push(packet.to_vec());
        let step = self.driver.step(&mut self.nic, queue, &mut wire).unwrap();
        !matches!(step, Step::Idle | Step::Blocked)
    }

    pub(crate) fn run(&mut self) {
        let packets = &mut self.packets;
        let mut wire = |packet: &[u8]| packets.push(packet.to_vec());
        self.driver.run(&mut self.nic, &mut wire).unwrap();
    }

    /// The bytes of a message's stream that have left, by their places.
    pub(crate) fn received(&self, id: u64) -> BTreeMap<usize, u8> {
        let mut stream = BTreeMap::new();
        for packet in &self.packets {
            let mut packet = packet.clone();
            let read = NativePacket::parse(&mut packet, 253).unwrap();
            let datagram = &packet[read.datagram];
            if datagram[20..28] == id.to_be_bytes() {
                let offset = u32::from_be_bytes(datagram[32..36].try_into().unwrap());
                stream.extend((offset as usize..).zip(datagram[36..].iter().copied()));
            }
        }
        stream
    }

    /// Whether the whole message has left, as software seals it.
    pub(crate) fn has_received(&self, id: u64, message: &Message) -> bool {
        let stream = self.received(id);
        stream.keys().copied().eq(0..message.plain.len())
            && stream.into_values().eq(message.sealed())
    }
}

/// A key as a session has it, and at the driver.
#[derive(Clone)]
pub(crate) struct SessionKey {
    pub(crate) handle: KeyHandle,
    suite: Suite,
    key: Vec<u8>,
    iv: [u8; 12],
}

impl SessionKey {
    pub(crate) fn new(rig: &Rig, number: u8) -> Self {
        let suite = Suite::ALL[usize::from(number) % Suite::ALL.len()];
        let (key, iv) = (vec![number; suite.key_len()], [number; 12]);
        let handle = rig.keys.install(suite.code(), &key, iv).unwrap();
        Self { handle, suite, key, iv }
    }
}

impl SessionKey {
    /// The same key for the receiver, whose records have so many bytes of plaintext.
    pub(crate) fn receiving(&self, bytes: usize) -> ReceivingKey<'_> {
        let extent = bytes as u16 - 1;
        ReceivingKey {
            suite: self.suite.code(),
            key: &self.key,
            iv: &self.iv,
            epoch: 0,
            flow: ReceivingFlow {
                session: 0,
                index_bits: 16,
                first_record: extent,
                record: extent,
            },
        }
    }
}

/// Records of a message.
#[derive(Clone)]
pub(crate) struct Message {
    header: [u8; 36],
    plain: Vec<u8>,
    unsealed: Vec<Unsealed>,
    payload_max: usize,
    key: SessionKey,
}

impl Message {
    /// A message of so many records of so many bytes.
    pub(crate) fn new(key: &SessionKey, id: u64, records: u64, bytes: usize) -> Self {
        let mut header = [0; 36];
        header[1] = 0x01;
        header[4] = 0xB0;
        header[20..28].copy_from_slice(&id.to_be_bytes());
        let length = records as u32 * (bytes as u32 - 1);
        header[28..32].copy_from_slice(&length.to_be_bytes());
        let (mut plain, mut unsealed) = (Vec::new(), Vec::new());
        for index in 0..records {
            let length = (bytes + 16) as u16;
            plain.extend_from_slice(&[0x17, 3, 3]);
            plain.extend_from_slice(&length.to_be_bytes());
            unsealed.push(Unsealed {
                at: plain.len() as u32,
                length: bytes as u32,
                key: key.handle,
                number: id << 16 | index,
            });
            plain.extend((0..bytes).map(|at| (at as u64 * 7 + id * 31 + index) as u8));
            plain.extend_from_slice(&[0; 16]);
        }
        Self { header, plain, unsealed, payload_max: 1_400, key: key.clone() }
    }

    /// The record stream before it is sealed.
    pub(crate) fn unsealed(&self) -> &[u8] {
        &self.plain
    }

    /// The bytes that the core would have sealed itself.
    pub(crate) fn sealed(&self) -> Vec<u8> {
        let key = &self.key;
        let aead = AwsLc.aead(key.suite, &key.key, key.iv).unwrap();
        let mut bytes = self.plain.clone();
        for record in &self.unsealed {
            let header = bytes[record.header()].to_vec();
            let body = record.body();
            let tag = body.end..body.end + 16;
            let sealed = aead.seal(record.number, &header, &mut bytes[body]).unwrap();
            bytes[tag].copy_from_slice(&sealed);
        }
        bytes
    }

    /// The message as it leaves: its first record alone, and the others together. The numbers of
    /// the second part go on where the first part's end.
    pub(crate) fn parts(&self) -> Vec<Self> {
        let Some(second) = self.unsealed.get(1) else {
            return vec![self.clone()];
        };
        let split = second.header().start;
        let (mut first, mut rest) = (self.clone(), self.clone());
        first.plain.truncate(split);
        first.unsealed.truncate(1);
        rest.plain.drain(..split);
        rest.unsealed.remove(0);
        for record in &mut rest.unsealed {
            record.at -= split as u32;
        }
        rest.header[32..36].copy_from_slice(&(split as u32).to_be_bytes());
        vec![first, rest]
    }

    fn batch(&self) -> Batch<'_> {
        Batch {
            layout: Layout::Segmented { header: &self.header, payload_max: self.payload_max },
            unsealed: &self.unsealed,
            ..Batch::datagrams(Path::to("192.0.2.2:9".parse().unwrap()), 1, &self.plain)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A wire between two hosts, in memory, and a watcher of what leaves: no SPI and IV twice, and no
//! byte of the secret payloads in the clear.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use smt_carrier::{Arrival, Batch, Capabilities, Carrier, Path, ReceiveError, SendError, Wait};

/// The bytes of which secret payloads are made: no header has so many of them.
pub(crate) const SECRET: [u8; 8] = [0xA7; 8];

/// The watcher of one wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct WireWatch(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    nonces: BTreeSet<[u8; 12]>,
    /// Packets that were none of PSP's.
    clear: usize,
    sealed: usize,
}

impl WireWatch {
    /// Sees a packet that leaves, from its IP header on.
    pub(crate) fn see(&self, packet: &[u8]) {
        let mut seen = self.0.lock().unwrap();
        let (protocol, udp_at) = match packet[0] >> 4 {
            4 => (packet[9], 20),
            _ => (packet[6], 40),
        };
        if protocol != 17 {
            seen.clear += 1;
            return;
        }
        seen.sealed += 1;
        assert_eq!(packet[udp_at + 2..udp_at + 4], [3, 0xE8], "the port of PSP");
        let nonce = packet[udp_at + 12..udp_at + 24].try_into().unwrap();
        assert!(seen.nonces.insert(nonce), "{nonce:?} leaves twice");
        let is_clear = packet.windows(SECRET.len()).any(|bytes| bytes == SECRET);
        assert!(!is_clear, "the payload leaves in the clear");
    }

    /// How many packets have left in the clear, and sealed.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let seen = self.0.lock().unwrap();
        (seen.clear, seen.sealed)
    }
}

/// One end of a wire.
pub(crate) struct WireEnd {
    local: SocketAddr,
    incoming: Arc<Mutex<VecDeque<Vec<u8>>>>,
    outgoing: Arc<Mutex<VecDeque<Vec<u8>>>>,
    watch: WireWatch,
}

impl WireEnd {
    /// A wire between two addresses.
    pub(crate) fn pair(near: SocketAddr, far: SocketAddr, watch: &WireWatch) -> [Arc<Self>; 2] {
        let (there, back) = (Arc::default(), Arc::default());
        let end = |local, incoming: &Arc<_>, outgoing: &Arc<_>| {
            Arc::new(Self {
                local,
                incoming: Arc::clone(incoming),
                outgoing: Arc::clone(outgoing),
                watch: watch.clone(),
            })
        };
        [end(near, &back, &there), end(far, &there, &back)]
    }
}

impl Carrier for WireEnd {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        self.watch.see(batch.bytes);
        self.outgoing.lock().unwrap().push_back(batch.bytes.to_vec());
        Ok(())
    }

    fn receive(&self, sink: &mut dyn FnMut(Arrival<'_>), _: Wait) -> Result<usize, ReceiveError> {
        let packet = self.incoming.lock().unwrap().pop_front();
        let Some(packet) = packet else {
            return Ok(0);
        };
        sink(Arrival::datagram(Path::to(self.local), &packet));
        Ok(1)
    }

    fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(1_500)
    }
}

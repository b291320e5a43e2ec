// SPDX-License-Identifier: Apache-2.0 OR MIT

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use smt_carrier::{Arrival, Batch, Capabilities, Path, SendError};
use smt_wire::Shard;

use super::*;
use crate::pki::EphemeralCa;

/// A carrier that takes so many bytes of each batch, and keeps them.
struct Scarce {
    room: Mutex<Option<usize>>,
    taken: Mutex<Vec<u8>>,
    reports: Mutex<Vec<ReceiveError>>,
}

impl Carrier for Scarce {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        let room = self.room.lock().unwrap().unwrap_or(batch.bytes.len());
        let bytes_sent = room.min(batch.bytes.len());
        self.taken.lock().unwrap().extend_from_slice(&batch.bytes[..bytes_sent]);
        match bytes_sent < batch.bytes.len() {
            true => Err(SendError::WouldBlock { bytes_sent }),
            false => Ok(()),
        }
    }

    fn receive(&self, _: &mut dyn FnMut(Arrival<'_>), _: Wait) -> Result<usize, ReceiveError> {
        self.reports.lock().unwrap().pop().map_or(Ok(0), Err)
    }

    fn local_address(&self) -> SocketAddr {
        REMOTE.parse().unwrap()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(1_472)
    }
}

const REMOTE: &str = "192.0.2.1:1";

/// A client that has a flight to send, its carrier and its pump.
fn connecting(room: Option<usize>) -> (Endpoint, Arc<Scarce>, Pump, Time) {
    let authority = EphemeralCa::new().unwrap();
    let builder = crate::client(authority.trust().unwrap());
    let carrier = Arc::new(Scarce {
        room: Mutex::new(room),
        taken: Mutex::default(),
        reports: Mutex::default(),
    });
    let parts = builder.endpoint_parts().unwrap();
    let mut endpoint = parts.endpoint(Shard::default(), &*carrier, None).endpoint;
    let now = Time::default() + Duration::from_secs(1);
    let path = Path::to(REMOTE.parse().unwrap());
    endpoint.connect(now, path, "server", Duration::from_secs(5)).unwrap();
    let pump = Pump::new(Arc::clone(&carrier) as Arc<dyn Carrier>);
    (endpoint, carrier, pump, now)
}

#[test]
fn a_batch_that_found_no_room_leaves_whole_and_once_with_the_next_flush() {
    let (mut endpoint, whole, mut pump, now) = connecting(None);
    assert!(pump.flush(&mut endpoint, now));
    let expected = whole.taken.lock().unwrap().len();
    let (mut endpoint, carrier, mut pump, now) = connecting(Some(0));
    assert!(!pump.flush(&mut endpoint, now) && pump.has_unsent());
    assert_eq!(pump.next_wake(&endpoint, now), Some(now + SEND_AGAIN));
    *carrier.room.lock().unwrap() = None;
    assert!(pump.flush(&mut endpoint, now) && !pump.has_unsent());
    assert_eq!(carrier.taken.lock().unwrap().len(), expected);
    assert!(pump.next_wake(&endpoint, now) > Some(now + SEND_AGAIN));
}

#[test]
fn a_report_of_an_unreachable_peer_is_something_and_a_failure_is_an_error() {
    let (mut endpoint, carrier, pump, now) = connecting(None);
    let remote = Some(REMOTE.parse().unwrap());
    let reports = [ReceiveError::Other { code: 9 }, ReceiveError::Unreachable { remote }];
    carrier.reports.lock().unwrap().extend(reports);
    let mut receive = || pump.receive(&mut endpoint, || now, Wait::Never);
    assert_eq!(receive(), Ok(true));
    assert_eq!(receive(), Err(ReceiveError::Other { code: 9 }));
    assert_eq!(receive(), Ok(false));
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether this process may use the native carrier: tried out.

use super::{NativeCarrier, NativeError, NativeOptions};
use smt_carrier::{Batch, Carrier, Path, Wait};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Sends a datagram natively from an address of this host to itself, and tells whether it has
/// arrived: something may drop the protocol. Takes half a second if nothing arrives.
///
/// # Errors
/// See [`NativeError`].
pub fn probe_native(ip: IpAddr, options: &NativeOptions) -> Result<bool, NativeError> {
    let open = || NativeCarrier::bind(SocketAddr::new(ip, 0), options);
    let (sender, receiver) = (open()?, open()?);
    let batch = Batch::datagrams(Path::to(receiver.local_address()), DATAGRAM.len(), DATAGRAM);
    let mut has_come = false;
    let mut sink = |arrival: smt_carrier::Arrival<'_>| has_come |= arrival.bytes == DATAGRAM;
    let is_sent = sender.send(&batch).is_ok();
    let received = receiver.receive(&mut sink, Wait::AtMost(ARRIVAL_WAIT));
    Ok(is_sent && received.is_ok() && has_come)
}

const DATAGRAM: &[u8] = b"a probe of native SMT";
/// Far above what loopback takes on a busy host.
const ARRIVAL_WAIT: Duration = Duration::from_millis(500);

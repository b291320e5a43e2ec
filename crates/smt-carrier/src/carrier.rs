// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The seam between the protocol and whatever moves its datagrams.

use crate::{Capabilities, ReceiveError, Received, SendError, Transmit};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::net::SocketAddr;
use core::time::Duration;

/// Sends and receives batches of datagrams.
///
/// Every method takes `&self`: one thread may send while another receives, without a lock of the
/// caller's. Datagrams may be lost, repeated, reordered or forged on the way; an arriving datagram
/// is not to be trusted.
pub trait Carrier: Send + Sync {
    /// Sends every datagram in `bytes`, cut as `transmit` says. Never blocks.
    ///
    /// An empty `bytes` sends nothing. Success means that the datagrams left, not that they
    /// arrived.
    ///
    /// # Errors
    /// See [`SendError`]; after an error other than `WouldBlock` an unknown prefix of the batch
    /// left.
    ///
    /// # Panics
    /// If `transmit.segment_size` is 0 or `transmit.priority` is above 7: the caller's mistake.
    fn send(&self, transmit: &Transmit, bytes: &[u8]) -> Result<(), SendError>;

    /// Takes the next batch of one path into `buffer`; `None` if there was nothing.
    ///
    /// `buffer` should hold [`RECEIVE_BUFFER_BYTES`](crate::limits::RECEIVE_BUFFER_BYTES): a batch
    /// or datagram that does not fit is dropped and counted. A waiting call may return `None`
    /// before its time, and later than its time by the granularity of the platform's timers.
    ///
    /// # Errors
    /// See [`ReceiveError`]; the call may be repeated after each of them.
    fn receive(&self, buffer: &mut [u8], wait: Wait) -> Result<Option<Received>, ReceiveError>;

    /// The address that peers call. The host part is unspecified (`0.0.0.0`, `::`) when the carrier
    /// listens on all of them.
    fn local_address(&self) -> SocketAddr;

    /// The abilities of this carrier, which the protocol core obeys
    /// (`smt_proto::Endpoint::set_capabilities`). Ask when an endpoint is opened.
    fn capabilities(&self) -> Capabilities;
}

/// How long a receive call may wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wait {
    /// Return at once; the call never blocks.
    Never,
    /// Return when something arrives, or after about this long.
    AtMost(Duration),
}

/// A pointer to a carrier carries as the carrier itself does.
macro_rules! carry_through_pointer {
    ($($pointer:ty),+) => {$(
        impl<C: Carrier + ?Sized> Carrier for $pointer {
            fn send(&self, transmit: &Transmit, bytes: &[u8]) -> Result<(), SendError> {
                (**self).send(transmit, bytes)
            }
            fn receive(
                &self,
                buffer: &mut [u8],
                wait: Wait,
            ) -> Result<Option<Received>, ReceiveError> {
                (**self).receive(buffer, wait)
            }
            fn local_address(&self) -> SocketAddr {
                (**self).local_address()
            }
            fn capabilities(&self) -> Capabilities {
                (**self).capabilities()
            }
        }
    )+};
}

carry_through_pointer!(&C, Arc<C>, Box<C>);

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The seam between the protocol and whatever moves its datagrams.

#[cfg(feature = "std")]
use crate::Readiness;
use crate::{Arrival, Associations, Batch, Capabilities, KeyStore, ReceiveError, SendError};
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
    /// Sends the datagrams of a batch. Never blocks.
    ///
    /// An empty batch sends nothing. Success means that the datagrams left, not that they arrived.
    ///
    /// # Errors
    /// See [`SendError`]; after an error other than `WouldBlock` an unknown prefix of the batch
    /// left.
    ///
    /// # Panics
    /// If the batch is not valid, or asks for what [`Self::capabilities`] excludes
    /// ([`Batch::assert_valid`]): the caller's mistake.
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError>;

    /// Hands what has arrived over to `sink`, each time datagrams of one path, and tells how often.
    /// 0: nothing has arrived.
    ///
    /// The bytes are in the carrier's memory, and the sink must be done with them when it returns.
    /// A call hands over a bounded number of arrivals: call again for more. A waiting call may
    /// return before its time, and later than its time by the granularity of the platform's timers.
    /// The sink must not send, since the carrier may hold a lock meanwhile.
    ///
    /// # Errors
    /// See [`ReceiveError`]; the call may be repeated after each of them.
    fn receive(&self, sink: &mut dyn FnMut(Arrival<'_>), wait: Wait)
    -> Result<usize, ReceiveError>;

    /// The address that peers call. The host part is unspecified (`0.0.0.0`, `::`) when the carrier
    /// listens on all of them.
    fn local_address(&self) -> SocketAddr;

    /// The abilities of this carrier, which the protocol core obeys
    /// (`smt_proto::Endpoint::set_capabilities`). Ask when an endpoint is opened.
    fn capabilities(&self) -> Capabilities;

    /// How an event loop learns that there is something to receive. Without a descriptor a thread
    /// must wait for it by [`Self::receive`].
    #[cfg(feature = "std")]
    fn readiness(&self) -> Readiness<'_> {
        Readiness::NONE
    }

    /// The keys that this carrier seals records with; `None` if it seals none.
    fn keys(&self) -> Option<Arc<dyn KeyStore>> {
        None
    }

    /// The associations that this carrier seals whole packets by; `None` if it seals none.
    fn associations(&self) -> Option<Arc<dyn Associations>> {
        None
    }
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
            fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
                (**self).send(batch)
            }
            fn receive(
                &self,
                sink: &mut dyn FnMut(Arrival<'_>),
                wait: Wait,
            ) -> Result<usize, ReceiveError> {
                (**self).receive(sink, wait)
            }
            fn local_address(&self) -> SocketAddr {
                (**self).local_address()
            }
            fn capabilities(&self) -> Capabilities {
                (**self).capabilities()
            }
            #[cfg(feature = "std")]
            fn readiness(&self) -> Readiness<'_> {
                (**self).readiness()
            }
            fn keys(&self) -> Option<Arc<dyn KeyStore>> {
                (**self).keys()
            }
            fn associations(&self) -> Option<Arc<dyn Associations>> {
                (**self).associations()
            }
        }
    )+};
}

carry_through_pointer!(&C, Arc<C>, Box<C>);

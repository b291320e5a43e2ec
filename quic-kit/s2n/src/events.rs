// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The events of s2n-quic's connections, counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kit_process::Counts;
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber, events};

/// The counts so far.
#[derive(Clone, Default)]
pub(crate) struct Total(Arc<Counters>);

#[derive(Default)]
struct Counters {
    sent: AtomicU64,
    lost: AtomicU64,
    /// The smallest at the end of a connection, plus 1. 0: no connection has ended.
    window: AtomicU64,
}

/// One connection.
pub(crate) struct Connection {
    window: u64,
}

impl Total {
    pub(crate) fn get(&self) -> Counts {
        let counters = &self.0;
        let window = counters.window.load(Ordering::Relaxed);
        Counts {
            sent: Some(counters.sent.load(Ordering::Relaxed)),
            lost: Some(counters.lost.load(Ordering::Relaxed)),
            window: window.checked_sub(1),
            ..Counts::default()
        }
    }
}

impl Subscriber for Total {
    type ConnectionContext = Connection;

    fn create_connection_context(
        &mut self,
        _meta: &ConnectionMeta,
        _info: &ConnectionInfo<'_>,
    ) -> Self::ConnectionContext {
        Connection { window: 0 }
    }

    fn on_packet_sent(
        &mut self,
        _connection: &mut Self::ConnectionContext,
        _meta: &ConnectionMeta,
        _event: &events::PacketSent,
    ) {
        self.0.sent.fetch_add(1, Ordering::Relaxed);
    }

    fn on_packet_lost(
        &mut self,
        _connection: &mut Self::ConnectionContext,
        _meta: &ConnectionMeta,
        _event: &events::PacketLost<'_>,
    ) {
        self.0.lost.fetch_add(1, Ordering::Relaxed);
    }

    fn on_recovery_metrics(
        &mut self,
        connection: &mut Self::ConnectionContext,
        _meta: &ConnectionMeta,
        event: &events::RecoveryMetrics<'_>,
    ) {
        connection.window = u64::from(event.congestion_window);
    }

    fn on_connection_closed(
        &mut self,
        connection: &mut Self::ConnectionContext,
        _meta: &ConnectionMeta,
        _event: &events::ConnectionClosed,
    ) {
        let window = connection.window + 1;
        let smaller = |of: u64| (of == 0 || window < of).then_some(window);
        let order = Ordering::Relaxed;
        // Failure says that what is there is smaller already.
        let _ = self.0.window.fetch_update(order, order, smaller);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statistics as a snapshot.

/// The counts of an endpoint since it was opened.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Statistics {
    /// Counted by the protocol: messages, packets, handshakes. The counters are the fields of
    /// [`ProtocolStatistics`](crate::ProtocolStatistics).
    pub protocol: smt_proto::Statistics,
    /// Counted at the socket; `None` over a carrier of another kind. The counters are the fields of
    /// [`SocketStatistics`](crate::SocketStatistics).
    pub socket: Option<smt_io::Statistics>,
    /// Live sessions.
    pub sessions: usize,
    /// Bytes held by incomplete messages, by packets that came before those that they need, and by
    /// whole messages that the application has not taken.
    pub memory: usize,
    /// One-way messages that were dropped because the application accepts requests alone.
    pub messages_dropped: u64,
    /// Messages of clients that the application's rule has refused
    /// ([`crate::Builder::authorize_messages`]).
    pub messages_refused: u64,
    /// Clients whose handshakes were refused: the attempts of one within some seconds count once.
    /// 0 at a polled endpoint, whose owner has events of them.
    pub clients_refused: u64,
    /// Sessions of clients whom the application's rule has refused ([`crate::Builder::authorize`]).
    pub sessions_refused: u64,
    /// Sessions whose peers were not accepted any more by a trust that was set later
    /// ([`crate::Distrusted`] says what becomes of them).
    pub sessions_distrusted: u64,
}

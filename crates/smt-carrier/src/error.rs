// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a datagram did not leave, or none could be taken.

use core::net::SocketAddr;
use thiserror::Error;

/// Why (the rest of) a batch did not leave. All are the environment's doing, none ends a session.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum SendError {
    /// The system refused for another reason: treat the batch as lost and report the code.
    #[error("the system refused to send (error code {code})")]
    Other {
        /// The platform's error number (`errno`).
        code: i32,
    },
    /// The datagrams are larger than this path's first link carries: a datagram-size probe failed.
    /// Send smaller ones.
    #[error("the datagram is larger than the path carries")]
    TooLarge,
    /// The system knows no way to the peer at present. A hint only: treat the batch as lost.
    #[error("no way to the peer at present")]
    Unreachable,
    /// The send queue is full. Send the bytes from `bytes_sent` on again, later.
    #[error("the send queue is full after {bytes_sent} bytes")]
    WouldBlock {
        /// Bytes of the batch that did leave: a multiple of the segment size. 0 if the batch is a
        /// stream or has records to be sealed: such a batch leaves whole or not at all.
        bytes_sent: usize,
    },
}

/// Why a receive call has nothing to show. No session ends by it.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum ReceiveError {
    /// The system refused for another reason: report the code; the carrier may be unusable.
    #[error("the system refused to receive (error code {code})")]
    Other {
        /// The platform's error number (`errno`).
        code: i32,
    },
    /// An unauthenticated report that something sent earlier did not arrive. A hint, never fatal:
    /// anyone on the way can forge it.
    #[error("the network reports the peer as unreachable")]
    Unreachable {
        /// The peer it is about, where the carrier knows.
        remote: Option<SocketAddr>,
    },
}

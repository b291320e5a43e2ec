// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ways of the network and of both sides.

use std::time::Duration;

use kit_process::Cipher;
use kit_process::request::Request;
use smt_nic::quic::AdmissionPolicy;

#[derive(Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) cipher: Cipher,
    pub(crate) request: Request,
    /// Connections of the client at once.
    pub(crate) connections: u32,
    /// Packets of a thousand.
    pub(crate) lost: u64,
    /// Packets of a thousand, by up to a millisecond.
    pub(crate) late: u64,
    /// Forged packets for a thousand genuine ones of the server.
    pub(crate) forged: u64,
    pub(crate) key_updates: u32,
    pub(crate) server_updates: u32,
    pub(crate) id_lifetime: Option<Duration>,
    /// Entries of the engine.
    pub(crate) connections_max: u32,
    pub(crate) policy: AdmissionPolicy,
    /// The client's address changes after so many of its packets, and it does not know.
    pub(crate) rebind_after: Option<u64>,
    /// The client moves to another address when half of its bytes have come.
    pub(crate) is_moving: bool,
    /// Bytes of the client's windows.
    pub(crate) window: u32,
    /// The server takes 0-RTT packets, and the client sends them if it can.
    pub(crate) is_early: bool,
}

pub(crate) const SETTING: Setting = Setting {
    cipher: Cipher::Aes128,
    request: Request { download: 3_000_000, upload: 0 },
    connections: 1,
    lost: 0,
    late: 0,
    forged: 0,
    key_updates: 0,
    server_updates: 0,
    id_lifetime: None,
    connections_max: 4,
    policy: AdmissionPolicy::ALL,
    rebind_after: None,
    is_moving: false,
    window: 16 << 20,
    is_early: false,
};

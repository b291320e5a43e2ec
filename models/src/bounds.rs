// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much happens in an exploration.

/// The bounds of one exploration: all executions within them are tried.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The name in reports.
    pub name: &'static str,
    /// Records of each message that the client sends, in their order.
    pub messages: &'static [u32],
    /// Key updates of the client.
    pub updates: u32,
    /// Messages that are given up.
    pub cancels: u32,
    /// Restarts of the server.
    pub restarts: u32,
    /// EPOCH_DONE and EPOCH_ACK of each epoch. Other control packets leave once, and what follows
    /// from their repetition is looked at as everything that may follow once nothing is lost.
    pub epoch_copies: usize,
}

impl Bounds {
    /// The window: an id that holds its floor, one at its border, one beyond, and a CANCEL.
    pub const WINDOW: Self = Self {
        name: "window",
        messages: &[1, 1, 1],
        updates: 0,
        cancels: 1,
        restarts: 0,
        epoch_copies: 1,
    };

    /// Key epochs: two updates, whose questions and answers come twice.
    pub const EPOCHS: Self = Self {
        name: "epochs",
        messages: &[1, 1],
        updates: 2,
        cancels: 0,
        restarts: 0,
        epoch_copies: 2,
    };

    /// A message of two records, which may span two epochs, and may be given up between them.
    pub const SPANNING: Self = Self {
        name: "two records",
        messages: &[2, 1],
        updates: 1,
        cancels: 1,
        restarts: 0,
        epoch_copies: 1,
    };

    /// Window and epochs together, with a CANCEL.
    pub const BOTH: Self = Self {
        name: "window and epochs",
        messages: &[1, 1, 1],
        updates: 1,
        cancels: 1,
        restarts: 0,
        epoch_copies: 1,
    };

    /// A restart of the server, with packets of the old session under way.
    pub const RESTART: Self = Self {
        name: "restart",
        messages: &[1, 1],
        updates: 1,
        cancels: 1,
        restarts: 1,
        epoch_copies: 1,
    };
}

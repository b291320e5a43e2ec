// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options about the socket that several subcommands share.

use clap::Args;
use smt::{Builder, UdpOptions};

/// How datagrams are sent and received.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct SocketArguments {
    /// Send each datagram by a call of its own, so that a capture shows what is on the wire
    #[arg(long)]
    pub(crate) no_gso: bool,
}

impl SocketArguments {
    /// Applies them.
    pub(crate) fn apply<R>(self, builder: Builder<R>) -> Builder<R> {
        builder.udp(UdpOptions::new().segmentation_offload(!self.no_gso))
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt keyd`: handshakes of SMT in a process of their own: keys for `smt esp`, and sessions that
//! are handed over to data processes (`hand_over`). For keys:
//!
//! 1. One end listens (`listen`), the other connects (`connect`): TLS 1.3, with certificates of
//!    both. Each agreement has a session of its own, whose exported secrets are the keys
//!    (`agreement`).
//! 2. Keys go to the tunnel of this host by its control socket (`tunnel`), as values.
//! 3. No packet leaves under a key before the peer has it, and no key goes before packets under it
//!    have come: make before break (RFC 4301 §4.4.2.1).
//!
//! This process has no state: it looks at the tunnel for what is in use. Its end changes nothing,
//! and each side of the split may begin anew.

mod agreement;
mod connect;
mod hand_over;
mod listen;
mod tunnel;

use std::net::IpAddr;

use clap::{Args, Subcommand};
use smt_esp_io::ModeName;

use crate::esp;
use crate::failure::Failure;
use tunnel::LocalTunnel;

/// Give a tunnel of smt esp its keys, and data processes their sessions, by handshakes
///
/// Each end of a tunnel has a smt keyd beside its smt esp up. One of the two listens, the other
/// connects. Both prove themselves by certificates. Keys are replaced while packets flow; if the
/// tunnel or this process begins anew, new keys are agreed on.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Connect(connect::Arguments),
    HandOver(hand_over::Arguments),
    Listen(listen::Arguments),
}

/// The tunnel of this host that gets the keys, and its other end.
#[derive(Args, Clone, Debug)]
struct PeerArguments {
    #[command(flatten)]
    tunnel: esp::TunnelArguments,
    /// The address of the tunnel's other end
    #[arg(long, value_name = "ADDRESS")]
    peer: IpAddr,
    /// Tunnel mode; by default transport mode
    #[arg(long)]
    tunnel_mode: bool,
}

impl PeerArguments {
    fn tunnel(&self) -> LocalTunnel {
        LocalTunnel {
            control: self.tunnel.control_path(),
            peer: self.peer,
            mode: match self.tunnel_mode {
                true => ModeName::Tunnel,
                false => ModeName::Transport,
            },
        }
    }
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Connect(arguments) => connect::run(arguments),
        Command::HandOver(arguments) => hand_over::run(arguments),
        Command::Listen(arguments) => listen::run(arguments),
    }
}

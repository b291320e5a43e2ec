// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line that all stacks have.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// One side of a measurement.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Answer requests.
    Server(ServerOptions),
    /// Connect, request, and receive.
    Client(ClientOptions),
}

/// Options of a server.
#[derive(Args, Clone, Debug)]
pub struct ServerOptions {
    /// Where to listen; port 0 is any.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// The server's certificates, PEM.
    #[arg(long)]
    pub certificate: PathBuf,
    /// The server's private key, PEM.
    #[arg(long)]
    pub key: PathBuf,
    /// The settings of both sides.
    #[command(flatten)]
    pub stack: StackOptions,
}

/// Options of a client.
#[derive(Args, Clone, Debug)]
pub struct ClientOptions {
    /// The server.
    #[arg(long)]
    pub connect: SocketAddr,
    /// The authority that has signed the server's certificate, PEM.
    #[arg(long)]
    pub authority: PathBuf,
    /// Bytes that each connection asks for.
    #[arg(long, default_value_t = 50_000_000)]
    pub bytes: u64,
    /// Bytes that each connection sends with its request.
    #[arg(long, default_value_t = 0)]
    pub upload: u64,
    /// Connections at once.
    #[arg(long, default_value_t = 1)]
    pub connections: u32,
    /// The settings of both sides.
    #[command(flatten)]
    pub stack: StackOptions,
}

/// Settings of the stack. One that a stack does not have ends the process, so that no figure is
/// taken for what it is not.
#[derive(Args, Clone, Debug)]
pub struct StackOptions {
    /// The only cipher suite that is offered and taken.
    #[arg(long, value_enum, default_value_t = Cipher::Aes128)]
    pub cipher: Cipher,
    /// Several datagrams with one system call (UDP GSO and GRO).
    #[arg(long, value_enum, default_value_t = Switch::On)]
    pub segmentation: Switch,
    /// Datagrams spread over a round trip. `default` is what the stack does by itself.
    #[arg(long, value_enum, default_value_t = Switch::Default)]
    pub pacing: Switch,
    /// Bytes of the largest datagram.
    #[arg(long, default_value_t = 1_350)]
    pub datagram: u16,
}

/// An AEAD of QUIC.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Cipher {
    /// AEAD_AES_128_GCM.
    Aes128,
    /// AEAD_AES_256_GCM.
    Aes256,
    /// AEAD_CHACHA20_POLY1305.
    Chacha20,
}

/// A setting that is on, off, or the stack's own choice.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Switch {
    /// The stack's own choice.
    Default,
    /// On.
    On,
    /// Off.
    Off,
}

#[derive(Parser)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// The command of this process. Ends the process if there is none.
#[must_use]
pub fn parse() -> Command {
    CommandLine::parse().command
}

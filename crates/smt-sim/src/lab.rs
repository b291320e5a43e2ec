// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A datacenter under load: open loop, workloads of the Homa papers, slowdown by size.
//!
//! 1. [`Scenario`] says what runs: topology, workload, load, transport.
//! 2. [`run`] lets every host send messages at random times to random others, whatever the network
//!    does.
//! 3. [`Results`] have the slowdown of each message: its time over that of the same message alone
//!    (`unloaded`), by size, and what links and queues have seen.
//!
//! Transports are compared through [`Messenger`]: SMT ([`SmtMessenger`]), or byte streams. Side by
//! side on the same links they are in a [`Sharing`].

mod cannot_run;
mod message_watch;
mod messenger;
mod named;
mod peers;
mod poisson;
mod results;
mod round;
mod run;
mod scenario;
mod scenario_file;
mod shared_host;
mod sharing;
mod smt_messenger;
mod stream_messenger;
mod unloaded;
mod watch;
mod wire_bytes;
pub(crate) mod workload;

pub use cannot_run::CannotRun;
pub use messenger::{Arrival, Messenger};
pub use named::Named;
pub use results::{LoneTime, Results, Sample, SlowdownRow};
pub use round::Round;
pub use run::{run, run_watched};
pub use scenario::{Pattern, Scenario, Transport, UnknownTransport};
pub use scenario_file::{ScenarioError, ScenarioFile};
pub use sharing::{Bottleneck, Senders, Share, Shares, Sharing};
pub use smt_messenger::SmtMessenger;
pub use stream_messenger::StreamMessenger;
pub use watch::{Standing, Watch};
pub use workload::{UnknownWorkload, Workload};

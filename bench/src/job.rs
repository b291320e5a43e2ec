// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The jobs that a run gives to its processes, and their answers. All of it is JSON.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::load::Group;

/// The settings that both sides must know.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Setting {
    /// Where the certificates are.
    pub(crate) directory: PathBuf,
    /// The path's MTU.
    pub(crate) mtu: u32,
    /// Bytes that peers on streams read at once.
    pub(crate) read_bytes: usize,
    /// Calls in progress at once on a connection that all share.
    pub(crate) callers: u32,
    /// For peers on tokio.
    pub(crate) on_tokio: OnTokio,
}

/// How a peer uses tokio.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct OnTokio {
    pub(crate) flavor: Flavor,
    pub(crate) handlers: Handlers,
}

/// A runtime.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) enum Flavor {
    /// The runtime of a process that has one core.
    #[default]
    CurrentThread,
    /// The runtime that `#[tokio::main]` gives on two cores.
    TwoWorkers,
}

/// Where a server's requests are answered.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Handlers {
    /// In the task that receives them.
    #[default]
    Inline,
    /// Each in a task of its own.
    Spawned,
}

impl Setting {
    /// The setting that suits the work: the same for all peers.
    pub(crate) fn new(directory: PathBuf, mtu: u32, work: &Work) -> Self {
        let (callers, is_about_connections) = match work {
            Work::Closed { sessions: 1.., .. } | Work::Fresh => (1, true),
            Work::Closed { groups, .. } => (groups.iter().map(|group| group.callers).sum(), false),
            Work::Open { .. } => (OPEN_CALLERS, false),
        };
        Self {
            directory,
            mtu,
            // Large buffers make calls fast, and connections dear.
            read_bytes: if is_about_connections { 4_096 } else { 65_536 },
            callers: callers as u32,
            on_tokio: OnTokio::default(),
        }
    }
}

/// The job of a server process.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ServerJob {
    pub(crate) peer: String,
    pub(crate) setting: Setting,
    pub(crate) address: IpAddr,
    /// The core that it is to stay on.
    pub(crate) core: Option<usize>,
}

/// The job of a client process.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ClientJob {
    pub(crate) peer: String,
    pub(crate) setting: Setting,
    pub(crate) server: SocketAddr,
    /// The core that it is to stay on.
    pub(crate) core: Option<usize>,
    pub(crate) work: Work,
    pub(crate) duration_s: f64,
}

/// A measurement.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) enum Work {
    /// Callers begin their next call when they have their reply. `sessions`: the least number of
    /// connections.
    Closed { groups: Vec<Group>, sessions: usize },
    /// Calls begin at random times that do not depend on replies.
    Open { size: u32, per_second: f64, seed: u64 },
    /// A new connection, one call of 64 bytes, the end of the connection; one after the other.
    Fresh,
}

impl Work {
    /// Whether replies have parts.
    pub(crate) fn has_parts(&self) -> bool {
        match self {
            Self::Closed { groups, .. } => groups.iter().any(|group| group.parts > 0),
            Self::Open { .. } | Self::Fresh => false,
        }
    }
}

/// The figures that a client measured.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Findings {
    /// One for each group of callers.
    pub(crate) groups: Vec<GroupFindings>,
    pub(crate) client_cpu_s: f64,
    /// The most memory that was resident since the process began.
    pub(crate) client_peak_bytes: u64,
    /// Packets that left by the network device in the meantime. If they are larger than the MTU on
    /// average, segmentation was offloaded, and super-packets passed whole.
    pub(crate) packets: u64,
    pub(crate) bytes_per_packet: f64,
}

/// Times in microseconds.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct GroupFindings {
    /// Finished.
    pub(crate) calls: u64,
    /// Due, and not finished within the time given to finish. They are in the times below with the
    /// age that they had then.
    pub(crate) unfinished: u64,
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) max_us: f64,
}

/// Calls in progress at once in the open loop; more wait, and their waiting counts.
pub(crate) const OPEN_CALLERS: usize = 128;
/// How a server's first line begins.
pub(crate) const LISTENING: &str = "listening on ";
/// A client's line when it is connected and warm.
pub(crate) const READY: &str = "ready";
/// The line that a client waits for after [`READY`].
pub(crate) const GO: &str = "go";
/// The question to which a server replies `CPU nanoseconds, resident bytes, most resident bytes`.
pub(crate) const USED: &str = "used";

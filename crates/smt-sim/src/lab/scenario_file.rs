// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scenarios as files that people write: TOML, in which every number has its unit in its name and
//! its bounds here.
//!
//! 1. [`ScenarioFile::parse`] reads one; what is wrong is told with line, field and what is
//!    permitted.
//! 2. Transport, load, duration and seed may be changed then.
//! 3. [`ScenarioFile::scenario`] gives what runs. The choices that a file leaves to the transport
//!    ("auto") are settled here.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::scenario::{Pattern, Scenario, Transport};
use crate::lab::workload::Workload;
use crate::net::link::Link;
use crate::net::packet::wire_len;
use crate::net::switch::{Spreading, SwitchPolicy};
use crate::net::topology::Topology;

mod error;
mod fields;

#[cfg(test)]
mod tests;

pub use error::ScenarioError;
use fields::Fields;

/// A scenario as it was written.
#[derive(Clone, Debug)]
pub struct ScenarioFile {
    /// A description of the scenario, in one line.
    pub about: String,
    scenario: Scenario,
    switch: SwitchWishes,
}

/// The wishes of a file for switches. `None`: as suits the transport.
#[derive(Clone, Copy, Debug, Default)]
struct SwitchWishes {
    mark_above: Option<Threshold>,
    trim_above: Option<Threshold>,
    spreading: Option<Spreading>,
}

/// A queue's length, or that none counts.
#[derive(Clone, Copy, Debug)]
struct Threshold(Option<u64>);

impl ScenarioFile {
    /// Shares of a host's link that may be asked for.
    pub const LOADS: RangeInclusive<f64> = 0.001..=1.0;
    /// Durations that may be asked for, in microseconds.
    pub const DURATIONS_US: RangeInclusive<u64> = 1..=10_000_000;

    /// Reads a file.
    ///
    /// # Errors
    /// The first thing that is not as it may be.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let mut file = Fields::of_file(text)?;
        let about = about(&mut file)?;
        let seed = file.integer("seed", 0..=i64::MAX as u64, 1)?;
        let transport = transport(&mut file)?;
        let workload = workload(&mut file)?;
        let duration = file.integer_given("duration_us", Self::DURATIONS_US)?;
        let warm_up = file.integer("warm_up_us", 0..=duration - 1, 0)?;
        let mut topology = topology(file.table("topology")?)?;
        let switch = match file.table_if_any("switch")? {
            Some(fields) => {
                let frame = wire_len(topology.edge.payload_max);
                switch(fields, frame, &mut topology.switch)?
            }
            None => SwitchWishes::default(),
        };
        let (pattern, peers) = pattern(file.table("pattern")?, topology.hosts())?;
        file.end()?;
        Ok(Self {
            about,
            scenario: Scenario {
                topology,
                workload,
                pattern,
                transport,
                duration: Duration::from_micros(duration),
                warm_up: Duration::from_micros(warm_up),
                peers,
                seed,
            },
            switch,
        })
    }

    /// Another transport.
    pub fn set_transport(&mut self, transport: Transport) {
        self.scenario.transport = transport;
    }

    /// Another load, within [`Self::LOADS`]. Returns whether the scenario has a load.
    #[must_use]
    pub fn set_load(&mut self, wanted: f64) -> bool {
        match &mut self.scenario.pattern {
            Pattern::Uniform { load } => {
                *load = wanted;
                true
            }
            Pattern::Incast { .. } => false,
        }
    }

    /// Another duration, of which the same share is warm-up.
    pub fn set_duration(&mut self, duration: Duration) {
        let share = self.scenario.warm_up.as_secs_f64() / self.scenario.duration.as_secs_f64();
        self.scenario.warm_up = duration.mul_f64(share);
        self.scenario.duration = duration;
    }

    /// Another seed.
    pub fn set_seed(&mut self, seed: u64) {
        self.scenario.seed = seed;
    }

    /// Returns the scenario that runs.
    pub fn scenario(&self) -> Scenario {
        let mut scenario = self.scenario.clone();
        let suits = scenario.transport.suits(&scenario.topology);
        let switch = &mut scenario.topology.switch;
        let SwitchWishes { mark_above, trim_above, spreading } = self.switch;
        switch.mark_above = mark_above.map_or(suits.mark_above, |Threshold(above)| above);
        switch.trim_above = trim_above.map_or(suits.trim_above, |Threshold(above)| above);
        switch.spreading = spreading.unwrap_or(suits.spreading);
        scenario
    }
}

/// It is shown as it is.
fn about(file: &mut Fields<'_>) -> Result<String, ScenarioError> {
    match file.text("about")? {
        Some(said) if said.value.contains(char::is_control) => {
            let is = format!("{:?}", said.value);
            Err(file.wrong("about", said.line, &is, "one line of text"))
        }
        said => Ok(said.map(|said| said.value).unwrap_or_default()),
    }
}

fn transport(file: &mut Fields<'_>) -> Result<Transport, ScenarioError> {
    let said = file.word("transport", Transport::PERMITTED)?;
    said.value.parse().map_err(|_| {
        let is = format!("{:?}", said.value);
        file.wrong("transport", said.line, &is, Transport::PERMITTED)
    })
}

fn workload(file: &mut Fields<'_>) -> Result<Workload, ScenarioError> {
    let permitted = format!(
        "\"w1\" to \"w5\", or the bytes of every message from 1 to {MESSAGE_BYTES_MAX}, such as 1000 or \"64K\""
    );
    let said = file.word("messages", &permitted)?;
    match said.value.replace('_', "").parse() {
        Ok(workload) if !matches!(workload, Workload::Fixed(bytes) if bytes > MESSAGE_BYTES_MAX) => {
            Ok(workload)
        }
        _ => {
            let is = format!("{:?}", said.value);
            Err(file.wrong("messages", said.line, &is, permitted))
        }
    }
}

fn topology(mut fields: Fields<'_>) -> Result<Topology, ScenarioError> {
    let kinds =
        [("datacenter", Kind::Datacenter), ("rack", Kind::Rack), ("two-hosts", Kind::TwoHosts)];
    let kind = fields.choice_given("kind", &kinds)?;
    let (mut racks, mut hosts, mut spines) = (1, 2, 0);
    match kind {
        Kind::TwoHosts => {}
        Kind::Rack => hosts = fields.integer_given("hosts", 2..=HOSTS_MAX)?,
        Kind::Datacenter => {
            racks = fields.integer_given("racks", 2..=256)?;
            hosts = fields.integer_given("hosts_per_rack", 1..=HOSTS_MAX / racks)?;
            spines = fields.integer_given("spines", 1..=64)?;
        }
    }
    let edge = link(&mut fields, ["edge_gbps", "edge_delay_ns"], 10)?;
    let core = match kind {
        Kind::Datacenter => link(&mut fields, ["core_gbps", "core_delay_ns"], 40)?,
        Kind::Rack | Kind::TwoHosts => edge,
    };
    let payload_max = fields.integer("payload_bytes_max", 1_472..=8_972, 1_472)? as usize;
    let mut delay = |name| fields.integer(name, 0..=DELAY_NS_MAX, 0);
    let [out, into] = [delay("host_out_ns")?, delay("host_in_ns")?].map(Duration::from_nanos);
    fields.end()?;
    let of_size = |link| Link { payload_max, ..link };
    Ok(Topology {
        racks: racks as u32,
        hosts_per_rack: hosts as u32,
        spines: spines as u32,
        edge: of_size(edge),
        host_delay: [out, into],
        core: of_size(core),
        switch: SwitchPolicy::default(),
    })
}

fn link(
    fields: &mut Fields<'_>,
    [rate, delay]: [&'static str; 2],
    gbps: u64,
) -> Result<Link, ScenarioError> {
    Ok(Link {
        rate: fields.integer(rate, 1..=400, gbps)? * 1_000_000_000,
        delay: Duration::from_nanos(fields.integer(delay, 0..=DELAY_NS_MAX, 0)?),
        payload_max: 0,
    })
}

/// Reads the table of switches; no queue is shorter than a frame.
fn switch(
    mut fields: Fields<'_>,
    frame: u64,
    policy: &mut SwitchPolicy,
) -> Result<SwitchWishes, ScenarioError> {
    policy.delay = Duration::from_nanos(fields.integer("delay_ns", 0..=DELAY_NS_MAX, 0)?);
    let unlimited = [("unlimited", UNLIMITED)];
    let queues = frame..=QUEUE_BYTES_MAX;
    let buffer = fields.integer_or_word("buffer_bytes", queues.clone(), &unlimited)?;
    policy.buffer = buffer.unwrap_or(policy.buffer);
    let mut threshold = |name| {
        let words = [("auto", Wish(None)), ("never", Wish(Some(Threshold(None))))];
        let wish = fields.integer_or_word(name, queues.clone(), &words)?;
        Ok(wish.and_then(|Wish(threshold)| threshold))
    };
    let (mark_above, trim_above) = (threshold("mark_above_bytes")?, threshold("trim_above_bytes")?);
    let ways = [
        ("auto", None),
        ("packet", Some(Spreading::ByPacket)),
        ("entropy", Some(Spreading::ByEntropy)),
    ];
    let spreading = fields.choice("spreading", &ways)?;
    fields.end()?;
    Ok(SwitchWishes { mark_above, trim_above, spreading })
}

/// Reads the pattern of senders and receivers, and to how many each sends.
fn pattern(mut fields: Fields<'_>, hosts: u32) -> Result<(Pattern, u32), ScenarioError> {
    let others = 1..=u64::from(hosts - 1);
    let kinds = [("uniform", false), ("incast", true)];
    let is_incast = fields.choice_given("kind", &kinds)?;
    let (pattern, peers) = if is_incast {
        let senders = fields.integer_given("senders", others)? as u32;
        let every = fields.integer_given("every_us", ScenarioFile::DURATIONS_US)?;
        let every = Duration::from_micros(every);
        (Pattern::Incast { senders, every }, u64::from(hosts - 1))
    } else {
        let load = fields.decimal_given("load", ScenarioFile::LOADS)?;
        let peers = fields.integer("peers", others.clone(), *others.end())?;
        (Pattern::Uniform { load }, peers)
    };
    fields.end()?;
    Ok((pattern, peers as u32))
}

#[derive(Clone, Copy)]
enum Kind {
    TwoHosts,
    Rack,
    Datacenter,
}

/// The wish of a file for a threshold, if it has one.
#[derive(Clone, Copy)]
struct Wish(Option<Threshold>);

impl From<u64> for Wish {
    fn from(bytes: u64) -> Self {
        Self(Some(Threshold(Some(bytes))))
    }
}

/// A switch has a route to each, and each a state for each peer.
const HOSTS_MAX: u64 = 4_096;
/// 32 MB, what [`super::SmtMessenger`] takes.
const MESSAGE_BYTES_MAX: u32 = 32 << 20;
/// 10 ms: half around the world is 70, and no datacenter is that.
const DELAY_NS_MAX: u64 = 10_000_000;
/// 1 GB.
const QUEUE_BYTES_MAX: u64 = 1_000_000_000;
/// A value so large that it limits nothing, and so small that sums do not overflow.
const UNLIMITED: u64 = u64::MAX / 2;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scenarios, and the cases of each.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::job::Work;
use crate::load::Group;
use crate::run::Arguments;
use crate::size::Size;

/// A kind of measurement.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scenario {
    /// One call at a time
    Unloaded,
    /// Many calls at a time
    Load,
    /// A thousand calls at a time whose handlers compute
    Busy,
    /// Messages of 1 MB, four at a time, with short replies
    Goodput,
    /// Short calls beside four transfers of 1 MB on the same connection
    Beside,
    /// Calls that begin at random times, whatever the replies do
    Open,
    /// Many sessions or connections with one server
    Sessions,
    /// New connections, one after the other
    Fresh,
    /// Replies in 64 parts
    Parts,
    /// Short calls while packets are lost
    Loss,
}

/// One combination of a scenario.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Case {
    pub(crate) scenario: Scenario,
    /// As the head of a column.
    pub(crate) label: String,
    /// Bytes of the requests that are timed, or of the parts of their replies.
    pub(crate) size: u32,
    /// Calls in progress at once; 0 if that is not fixed.
    pub(crate) callers: usize,
    /// Where the case stands on the axis of a plot.
    pub(crate) x: f64,
    pub(crate) work: Work,
}

impl Scenario {
    /// All cases, in the order of the table.
    pub(crate) fn cases(self, plan: &Arguments) -> Vec<Case> {
        match self {
            Self::Unloaded => {
                let of =
                    |size: &Size| self.closed(size.to_string(), echo(1, *size), f64::from(size.0));
                plan.sizes.iter().map(of).collect()
            }
            Self::Load => {
                let of = |callers: usize, size: Size| {
                    let label = format!("{size} x{callers}");
                    self.closed(label, echo(callers, size), callers as f64)
                };
                let sizes = plan.load_sizes.iter();
                let cases = sizes.flat_map(|size| {
                    plan.concurrency.iter().map(move |callers| of(*callers, *size))
                });
                cases.collect()
            }
            Self::Busy => vec![self.closed("64 B x1000, 100 us each".to_owned(), vec![BUSY], 0.0)],
            Self::Goodput => vec![self.closed("1 MB x4".to_owned(), vec![BULK], 0.0)],
            Self::Beside => {
                let mut groups = echo(1, Size(64));
                groups.push(BULK);
                vec![self.closed("64 B beside 1 MB x4".to_owned(), groups, 0.0)]
            }
            Self::Open => {
                let rates = plan.rates.iter();
                rates.map(|rate| self.open(*rate, plan.seed)).collect()
            }
            Self::Sessions => {
                let callers = SESSIONS_CALLERS.min(plan.sessions);
                let mut case = self.closed(
                    format!("{} sessions", plan.sessions),
                    echo(callers, Size(64)),
                    0.0,
                );
                if let Work::Closed { sessions, .. } = &mut case.work {
                    *sessions = plan.sessions;
                }
                vec![case]
            }
            Self::Fresh => vec![Case {
                scenario: self,
                label: "connect, 64 B, close".to_owned(),
                size: 64,
                callers: 1,
                x: 0.0,
                work: Work::Fresh,
            }],
            Self::Parts => {
                let sizes = plan.part_sizes.iter();
                let cases = sizes.flat_map(|size| {
                    let calls = plan.calls_in_parts.iter();
                    calls.map(move |callers| self.in_parts(*callers, *size))
                });
                cases.collect()
            }
            Self::Loss => self.losses(plan),
        }
    }

    /// Ten thousand connections take long to open.
    pub(crate) fn repetitions(self, wanted: u32) -> u32 {
        match self {
            Self::Sessions => wanted.min(3),
            _ => wanted,
        }
    }

    fn closed(self, label: String, groups: Vec<Group>, x: f64) -> Case {
        Case {
            scenario: self,
            label,
            size: groups[0].request,
            callers: groups[0].callers,
            x,
            work: Work::Closed { groups, sessions: 0 },
        }
    }

    fn losses(self, plan: &Arguments) -> Vec<Case> {
        let closed = |callers: usize| {
            self.closed(format!("64 B x{callers}"), echo(callers, Size(64)), callers as f64)
        };
        let large = echo(10, Size(65_536));
        vec![
            closed(1),
            closed(10),
            closed(100),
            self.open(plan.loss_rate, plan.seed),
            self.closed("64 KB x10".to_owned(), large, 10.0),
        ]
    }

    fn in_parts(self, callers: usize, size: Size) -> Case {
        let label = format!("{size} x{callers}");
        let mut group = echo(callers, Size(64));
        group[0].reply = size.0;
        group[0].parts = PARTS;
        let case = self.closed(label, group, callers as f64);
        Case { size: size.0, ..case }
    }

    fn open(self, per_second: f64, seed: u64) -> Case {
        Case {
            scenario: self,
            label: format!("64 B, {per_second}/s"),
            size: 64,
            callers: 0,
            x: per_second,
            work: Work::Open { size: 64, per_second, seed },
        }
    }
}

fn echo(callers: usize, size: Size) -> Vec<Group> {
    vec![Group { callers, request: size.0, reply: size.0, parts: 0, work_us: 0 }]
}

/// Transfers.
const BULK: Group = Group { callers: 4, request: 1 << 20, reply: 64, parts: 0, work_us: 0 };
/// Handlers that keep all workers busy.
const BUSY: Group = Group { callers: 1_000, request: 64, reply: 64, parts: 0, work_us: 100 };
/// Calls in progress over many sessions.
const SESSIONS_CALLERS: usize = 100;
/// Parts of each reply that has any.
const PARTS: u32 = 64;

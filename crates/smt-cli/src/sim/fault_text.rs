// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A fault of a case: its kind, time, hosts and extent.

use std::time::Duration;

use serde::Serialize;
use smt_sim::net::{FaultKind, LinkFault};
use smt_sim::swarm::{Case, HostFault, HostFaultKind};
use smt_wire::PacketType;

use crate::time_span;

/// A fault, of a cable or of a host.
#[derive(Clone, Debug, Serialize)]
pub(super) struct FaultText {
    kind: String,
    from_ns: u64,
    /// The same as `from_ns` if it happens at once; `None` if it lasts to the end.
    until_ns: Option<u64>,
    /// Empty: all of them.
    hosts: Vec<u32>,
    detail: String,
}

impl FaultText {
    /// All faults of a case in the order of their times.
    pub(super) fn all(case: &Case) -> Vec<Self> {
        let of_links = case.link_faults.iter().map(Self::of_link);
        let of_hosts = case.host_faults.iter();
        let of_hosts = of_hosts.map(|fault| Self::of_host(fault, case.heals.as_nanos()));
        let mut faults: Vec<_> = of_links.chain(of_hosts).collect();
        if case.has_adversary {
            let detail = "somebody on the path, without keys";
            faults.push(Self::always(FaultKind::Adversary, Vec::new(), detail));
        }
        if case.has_small_memory {
            let memory = |host: &u32| case.configs[*host as usize].memory_max;
            let host = (0..case.hosts()).min_by_key(memory);
            let detail = "it has little memory for messages, and a small window";
            let hosts = host.into_iter().collect();
            faults.push(Self::always(FaultKind::MemoryLimit, hosts, detail));
        }
        faults.sort_by_key(|fault| fault.from_ns);
        faults
    }

    /// One line.
    pub(super) fn text(&self) -> String {
        let moment = |ns| time_span::display(Duration::from_nanos(ns));
        let time = match self.until_ns {
            Some(until) if until == self.from_ns => format!("at {}", moment(until)),
            Some(until) => format!("{} to {}", moment(self.from_ns), moment(until)),
            None if self.from_ns == 0 => "all the time".to_owned(),
            None => format!("from {} on", moment(self.from_ns)),
        };
        let who = match &self.hosts[..] {
            [] => "all hosts".to_owned(),
            [host] => format!("host {host}"),
            several => {
                let names: Vec<_> = several.iter().map(u32::to_string).collect();
                format!("hosts {}", names.join(", "))
            }
        };
        let Self { kind, detail, .. } = self;
        format!("{time:<20} {who:<11} {kind:<12} {detail}").trim_end().to_owned()
    }

    fn of_link(fault: &LinkFault) -> Self {
        let hosts = fault.pair.map(|(one, other)| vec![one.0, other.0]);
        Self {
            kind: format!("{:?}", fault.kind),
            from_ns: fault.from.as_nanos(),
            until_ns: Some(fault.until.as_nanos()),
            hosts: hosts.unwrap_or_default(),
            detail: link_detail(fault),
        }
    }

    fn of_host(fault: &HostFault, heals_ns: u64) -> Self {
        use HostFaultKind as K;
        let HostFault { at, host, kind } = *fault;
        let (name, detail) = host_detail(kind);
        let until_ns = match kind {
            // Sockets are healed, clocks are not.
            K::Short => Some(heals_ns),
            K::Refuse(time) => Some((at + time).as_nanos().min(heals_ns)),
            K::Drift(_) => None,
            _ => Some(at.as_nanos()),
        };
        Self {
            kind: name.to_owned(),
            from_ns: at.as_nanos(),
            until_ns,
            hosts: vec![host.0],
            detail,
        }
    }

    fn always(kind: FaultKind, hosts: Vec<u32>, detail: &str) -> Self {
        Self {
            kind: format!("{kind:?}"),
            from_ns: 0,
            until_ns: None,
            hosts,
            detail: detail.to_owned(),
        }
    }
}

/// The effect of a fault of the cables, shown beside its name.
fn link_detail(fault: &LinkFault) -> String {
    let LinkFault { chance, extent, .. } = *fault;
    let share = format!("{} of the packets", percent(chance));
    let later = time_span::display(Duration::from_nanos(extent));
    match fault.kind {
        FaultKind::Partition => String::new(),
        FaultKind::HalfPartition => "nothing passes from the first to the second".to_owned(),
        FaultKind::EndLoss => match fault.pair {
            Some(_) => format!("DATA from offset {extent} on, from the first to the second"),
            None => format!("DATA from offset {extent} on"),
        },
        FaultKind::Shrink => format!("nothing above {extent} B passes"),
        FaultKind::BurstLoss => format!("{share} begin a gap of up to {extent}"),
        FaultKind::OneTypeLoss => format!("{share} of type {}", packet_type(extent)),
        FaultKind::Delay => format!("{share}, {later} later"),
        FaultKind::Duplicate | FaultKind::Forge | FaultKind::Reorder | FaultKind::Replay => {
            format!("{share}, up to {later} later")
        }
        _ => share,
    }
}

/// The name of a host's fault, and its details.
fn host_detail(kind: HostFaultKind) -> (&'static str, String) {
    use HostFaultKind as K;
    let name = match kind {
        K::Crash { keeps: true } => "CrashKeeping",
        K::Crash { keeps: false } => "CrashLosing",
        K::TakeOver => "TakeOver",
        K::ShutDown => "ShutDown",
        K::CloseAll => "CloseAll",
        K::Restart => "Restart",
        K::Pause => "Pause",
        K::Resume => "Resume",
        K::Step(_) => "ClockStep",
        K::Drift(_) => "ClockDrift",
        K::Refuse(_) => "SendRefused",
        K::Short => "SendShort",
        K::RotateDeviceKey => "DeviceKey",
    };
    let detail = match kind {
        K::Step(by) => format!("its clock jumps {} ahead", time_span::display(by)),
        K::Drift(millionths) if millionths < 0 => {
            format!("its clock loses {} us a second", -millionths)
        }
        K::Drift(millionths) => format!("its clock gains {millionths} us a second"),
        K::TakeOver => "a standby has its address, and it goes on to send".to_owned(),
        _ => String::new(),
    };
    (name, detail)
}

/// Exactly: millionths have four digits behind the point.
fn percent(millionths: u32) -> String {
    let digits = format!("{}.{:04}", millionths / 10_000, millionths % 10_000);
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits} %")
}

fn packet_type(number: u64) -> String {
    let known = PacketType::ALL.into_iter().find(|packet_type| *packet_type as u64 == number);
    known.map_or_else(|| format!("{number:#04x}"), |known| known.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use smt_sim::net::HostId;

    /// A case without faults.
    fn calm() -> Case {
        let mut case = Case::new(1);
        case.link_faults.clear();
        case.host_faults.clear();
        case.has_adversary = false;
        case.has_small_memory = false;
        case
    }

    mod all {
        use super::*;

        #[test]
        fn faults_are_in_the_order_of_their_times() {
            let faults = (0..100).map(|seed| FaultText::all(&Case::new(seed)));
            let (mut count, mut kinds) = (0, Vec::new());
            for faults in faults {
                assert!(faults.is_sorted_by_key(|fault| fault.from_ns));
                count += faults.len();
                kinds.extend(faults.into_iter().map(|fault| fault.kind));
            }
            kinds.sort();
            kinds.dedup();
            assert!(count > 100 && kinds.len() > 15, "{count}: {kinds:?}");
        }
    }

    mod text {
        use super::*;

        #[test]
        fn says_who_and_how_much() {
            let mut case = calm();
            case.link_faults.push(LinkFault {
                kind: FaultKind::OneTypeLoss,
                from: case.heals,
                until: case.heals + Duration::from_millis(1),
                pair: Some((HostId(0), HostId(2))),
                chance: 123_400,
                extent: PacketType::Ack as u64,
            });
            let text = FaultText::all(&case)[0].text();
            let said = "hosts 0, 2  OneTypeLoss  12.34 % of the packets of type ACK";
            assert!(text.ends_with(said), "{text}");
        }

        #[test]
        fn a_limit_of_memory_names_its_host() {
            let mut case = calm();
            case.has_small_memory = true;
            case.configs[1].memory_max = 20_000;
            let text = FaultText::all(&case)[0].text();
            let said = "all the time         host 1      MemoryLimit ";
            assert!(text.starts_with(said), "{text}");
        }

        #[test]
        fn says_when() {
            let mut case = calm();
            case.has_adversary = true;
            let (host, at) = (HostId(1), case.heals);
            case.heals = at + Duration::from_secs(1);
            for kind in [
                HostFaultKind::Pause,
                HostFaultKind::Drift(-5),
                HostFaultKind::Refuse(Duration::from_millis(2)),
            ] {
                case.host_faults.push(HostFault { at, host, kind });
            }
            let moment = time_span::display(Duration::from_nanos(at.as_nanos()));
            let faults = FaultText::all(&case);
            let starts = [
                "all the time ".to_owned(),
                format!("at {moment} "),
                format!("from {moment} on "),
                format!("{moment} to "),
            ];
            for (fault, start) in faults.iter().zip(&starts) {
                assert!(fault.text().starts_with(start), "{}", fault.text());
            }
            assert_eq!(faults.len(), starts.len());
        }
    }

    mod percent {
        use super::super::percent;

        #[test]
        fn is_exact() {
            for (millionths, text) in [
                (0, "0 %"),
                (1, "0.0001 %"),
                (5_000, "0.5 %"),
                (123_456, "12.3456 %"),
                (1_000_000, "100 %"),
            ] {
                assert_eq!(percent(millionths), text);
            }
        }
    }

    mod packet_type {
        use super::super::packet_type;

        #[test]
        fn is_named_if_it_is_known() {
            assert_eq!(packet_type(0x01), "DATA");
            assert_eq!(packet_type(0xF0), "0xf0");
        }
    }
}

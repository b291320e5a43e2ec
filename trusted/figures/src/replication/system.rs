// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The systems that are measured.

use std::sync::Arc;

use smt_loopback::Machine;
use smt_replica::Group;

use super::device::{Attesting, Devices, Way};
use super::requester::Requester;
use super::{REPLICAS, bft, chain, crash_tolerant, peer_review};
use crate::Failure;

/// A protocol with its service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Bft {
        batch: usize,
    },
    Chain,
    PeerReview {
        is_audited: bool,
    },
    /// Raft without liars or attestation.
    Raft {
        batch: usize,
    },
    /// Chain replication without liars or attestation.
    CrashTolerantChain,
}

/// A protocol over devices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct System {
    pub(crate) kind: Kind,
    pub(crate) attesting: Attesting,
}

/// All that the members of one run share. Each makes its part in its own thread.
#[derive(Clone)]
pub(crate) struct Place {
    members: Members,
    ways: Vec<Way>,
}

/// The members of a kind of system, with what they all know.
#[derive(Clone)]
enum Members {
    Bft(Arc<Group>),
    Chain(Arc<Group>),
    PeerReview(Arc<smt_peer_review::Group>),
    Raft { batch: usize },
    CrashTolerantChain,
}

impl System {
    /// Reads [`System::arguments`].
    pub(crate) fn parse(kind: &str, attesting: &str) -> Option<Self> {
        let batch = |number: &str| number.parse().ok().filter(|it| *it > 0);
        let kind = match kind.split_once('-') {
            None if kind == "chain" => Kind::Chain,
            Some(("bft", number)) => Kind::Bft { batch: batch(number)? },
            Some(("raft", number)) => Kind::Raft { batch: batch(number)? },
            Some(("review", "alone")) => Kind::PeerReview { is_audited: false },
            Some(("review", "audited")) => Kind::PeerReview { is_audited: true },
            Some(("chain", "trusting")) => Kind::CrashTolerantChain,
            _ => return None,
        };
        let attesting = match attesting {
            "library" => Attesting::Library,
            "process" => Attesting::Process,
            _ => return None,
        };
        Some(Self { kind, attesting })
    }

    /// The system as arguments of this program, unless its devices are emulated.
    pub(crate) fn arguments(&self) -> Option<[String; 2]> {
        let kind = match self.kind {
            Kind::Bft { batch } => format!("bft-{batch}"),
            Kind::Raft { batch } => format!("raft-{batch}"),
            Kind::Chain => "chain".to_owned(),
            Kind::CrashTolerantChain => "chain-trusting".to_owned(),
            Kind::PeerReview { is_audited: false } => "review-alone".to_owned(),
            Kind::PeerReview { is_audited: true } => "review-audited".to_owned(),
        };
        let attesting = match self.attesting {
            Attesting::Library => "library",
            Attesting::Process => "process",
            Attesting::Emulated(..) => return None,
        };
        Some([kind, attesting.to_owned()])
    }

    pub(crate) fn place(&self, devices: &Devices, clients: u32) -> Result<Place, Failure> {
        let ways: Vec<Way> = (0..REPLICAS).map(|it| devices.way(it)).collect();
        let members = match self.kind {
            Kind::Bft { batch } => Members::Bft(bft::group(clients, batch)),
            Kind::Chain => Members::Chain(bft::group(clients, IN_PROGRESS as usize)),
            Kind::PeerReview { is_audited } => {
                let keys = peer_review::keys(&ways)?;
                Members::PeerReview(peer_review::group(keys, is_audited))
            }
            Kind::Raft { batch } => Members::Raft { batch },
            Kind::CrashTolerantChain => Members::CrashTolerantChain,
        };
        Ok(Place { members, ways })
    }
}

/// Requests in progress of a client whose requests may go together.
const IN_PROGRESS: u32 = 16;

impl Place {
    pub(crate) fn machine(&self, own: u32) -> Result<Box<dyn Machine<Error = Failure>>, Failure> {
        self.watched_machine(own, bft::Executed::default())
    }

    /// A replica whose executed batches another thread reads; those of BFT alone are counted.
    pub(crate) fn watched_machine(
        &self,
        own: u32,
        executed: bft::Executed,
    ) -> Result<Box<dyn Machine<Error = Failure>>, Failure> {
        let way = self.ways.get(own as usize).ok_or("no such replica")?;
        Ok(match &self.members {
            Members::Bft(group) => Box::new(bft::Replica::new(group.clone(), own, way, executed)?),
            Members::Chain(group) => Box::new(chain::Node::new(group.clone(), own, way)?),
            Members::PeerReview(group) => {
                Box::new(peer_review::Streaming::new(group.clone(), own, way)?)
            }
            Members::Raft { batch } => Box::new(crash_tolerant::Raft::new(own, *batch)),
            Members::CrashTolerantChain => Box::new(crash_tolerant::Chain::new(own)),
        })
    }

    /// How many requests a client has in progress at most.
    pub(crate) fn in_progress(&self) -> u32 {
        match &self.members {
            Members::Bft(_) | Members::Chain(_) => IN_PROGRESS,
            Members::PeerReview(_) | Members::Raft { .. } | Members::CrashTolerantChain => 1,
        }
    }

    /// The clients of so many requests in progress.
    pub(crate) fn requesters(&self, requests: u32) -> Vec<Box<dyn Requester>> {
        (0..requests.div_ceil(self.in_progress())).map(|it| self.requester(it)).collect()
    }

    fn requester(&self, own: u32) -> Box<dyn Requester> {
        match &self.members {
            Members::Bft(group) => Box::new(bft::Caller::new(group.clone(), own)),
            Members::Chain(group) => Box::new(chain::Caller::new(group.clone(), own)),
            Members::PeerReview(_) => Box::new(peer_review::Giver::new(own)),
            Members::Raft { .. } => Box::new(crash_tolerant::Caller::new(own, true)),
            Members::CrashTolerantChain => Box::new(crash_tolerant::Caller::new(own, false)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::replication::in_memory;

    const KINDS: [Kind; 6] = [
        Kind::Bft { batch: 8 },
        Kind::Chain,
        Kind::PeerReview { is_audited: false },
        Kind::PeerReview { is_audited: true },
        Kind::Raft { batch: 8 },
        Kind::CrashTolerantChain,
    ];

    #[test]
    fn a_system_is_read_from_its_arguments() {
        for kind in KINDS {
            for attesting in [Attesting::Library, Attesting::Process] {
                let [name, device] = System { kind, attesting }.arguments().unwrap();
                let read = System::parse(&name, &device).unwrap();
                assert_eq!((read.kind, read.attesting), (kind, attesting));
            }
        }
        for name in ["bft", "bft-0", "raft-x", "review", "chain-"] {
            assert!(System::parse(name, "library").is_none(), "{name}");
        }
    }

    #[test]
    fn each_system_answers_all_requests_of_several_clients_in_memory() {
        for kind in KINDS {
            for attesting in [Attesting::Library, Attesting::Emulated("3 us", 3)] {
                in_memory::run(&System { kind, attesting }, 5, 20).unwrap();
            }
        }
    }

    #[test]
    fn audits_are_part_of_the_work_of_an_audited_stream() {
        let [alone, audited] = [false, true].map(|is_audited| {
            let kind = Kind::PeerReview { is_audited };
            in_memory::run(&System { kind, attesting: Attesting::Library }, 5, 40).unwrap()
        });
        assert!(audited > alone, "{audited} messages, {alone} without audits");
    }
}

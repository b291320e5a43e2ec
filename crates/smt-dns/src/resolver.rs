// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Asks DNS for a server's record (SPEC §6.9).
//!
//! Bounded: the time of a lookup, the aliases (`CNAME`) that it follows (8, by the library), the
//! length of an answer (65,535 bytes, by DNS over TCP), its records, and each record's length.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hickory_net::runtime::TokioRuntimeProvider;
use hickory_net::{DnsError, NetError};
use hickory_proto::dnssec::{Proof, TrustAnchors};
use hickory_proto::rr::domain::usage;
use hickory_proto::rr::{Record, RecordType};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig};

use crate::error::LookupError;
use crate::limits::{LOOKUP_TIME, RECORDS_MAX};
use crate::record::{TicketRecord, svcb};
use crate::server::Server;

/// How names are looked up.
#[derive(Clone, Debug)]
pub struct ResolverPlan {
    /// The resolvers that are asked; none stands for the system's (`/etc/resolv.conf`).
    pub resolvers: Vec<SocketAddr>,
    /// The signatures that are verified beside the ticket itself.
    pub dnssec: Dnssec,
    /// The time that one lookup may take, repetitions included.
    pub time: Duration,
}

/// Whether signatures over records are verified. A ticket has its own, and needs no other: DNSSEC
/// keeps forgers from taking a server's ticket away, which costs its clients speed alone.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Dnssec {
    /// They are not.
    #[default]
    Off,
    /// They are, from the root zone down.
    FromRoot,
    /// They are, from these keys down: DNSKEY records as text, as in a zone file.
    From(String),
}

impl Default for ResolverPlan {
    /// The system's resolvers, without DNSSEC, for five seconds at most.
    fn default() -> Self {
        Self { resolvers: Vec::new(), dnssec: Dnssec::Off, time: LOOKUP_TIME }
    }
}

/// Looks records up. It keeps none: [`crate::TicketWatch`] decides when a name is looked up again.
#[derive(Clone)]
pub struct TicketResolver {
    resolver: TokioResolver,
    verifies: bool,
    time: Duration,
}

/// A record as it was found.
#[derive(Clone, Debug)]
pub struct FoundRecord {
    /// The record.
    pub record: TicketRecord,
    /// Its TTL in seconds, or that of an alias if it is less: whatever the answer says.
    pub ttl: u32,
}

impl TicketResolver {
    /// A resolver.
    ///
    /// # Errors
    /// The system's configuration cannot be read, or the keys of [`Dnssec::From`] are none.
    pub fn new(plan: &ResolverPlan) -> Result<Self, LookupError> {
        let environment = |error: NetError| LookupError::Resolver(error.to_string());
        let provider = TokioRuntimeProvider::default();
        let mut builder = match plan.resolvers.as_slice() {
            [] => TokioResolver::builder(provider).map_err(environment)?,
            resolvers => {
                let servers = resolvers.iter().map(name_server).collect();
                let config = ResolverConfig::from_name_servers(servers);
                TokioResolver::builder_with_config(config, provider)
            }
        };
        let options = builder.options_mut();
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        options.edns0 = true;
        options.validate = plan.dnssec != Dnssec::Off;
        // The second attempt must still be within the time.
        options.timeout = plan.time / 2;
        options.attempts = 1;
        if let Dnssec::From(text) = &plan.dnssec {
            let anchors = TrustAnchors::from_str(text)
                .map_err(|error| LookupError::Anchors(error.to_string()))?;
            builder = builder.with_trust_anchor(Arc::new(anchors));
        }
        Ok(Self {
            resolver: builder.build().map_err(environment)?,
            verifies: plan.dnssec != Dnssec::Off,
            time: plan.time,
        })
    }

    /// The records of a server that are well formed, in no order; at least one.
    ///
    /// # Errors
    /// [`LookupError`] says why there is none. It never takes longer than the plan's time.
    pub async fn look_up(&self, server: &Server) -> Result<Vec<FoundRecord>, LookupError> {
        let name = server.dns_name()?;
        // Not `.local`, which clusters have in DNS.
        let special = [&*usage::LOCALHOST, &*usage::INVALID, &*usage::ONION];
        if special.iter().any(|zone| zone.zone_of(&name)) {
            return Err(LookupError::SpecialName(server.name().to_owned()));
        }
        let asked = self.resolver.lookup(name, RecordType::SVCB);
        let Ok(found) = tokio::time::timeout(self.time, asked).await else {
            return Err(LookupError::NoAnswer(self.time));
        };
        let found = found.map_err(|error| self.failure(error))?;
        self.records(found.answers())
    }

    fn records(&self, answers: &[Record]) -> Result<Vec<FoundRecord>, LookupError> {
        let of_interest = |record: &&Record| {
            let kind = record.record_type();
            kind == RecordType::SVCB || kind == RecordType::CNAME
        };
        let answers: Vec<&Record> = answers.iter().filter(of_interest).collect();
        if self.verifies && !answers.iter().all(|record| is_proved(record)) {
            return Err(LookupError::NotSigned);
        }
        let ttl = answers.iter().map(|record| record.ttl).min().unwrap_or(0);
        let (mut found, mut wrong) = (Vec::new(), None);
        let svcbs = answers.iter().filter_map(|record| svcb(&record.data));
        for record in svcbs.take(RECORDS_MAX) {
            match TicketRecord::from_svcb(record) {
                Ok(record) => found.push(FoundRecord { record, ttl }),
                Err(error) => wrong = Some(error),
            }
        }
        match (found.is_empty(), wrong) {
            (false, _) => Ok(found),
            (true, Some(error)) => Err(error.into()),
            (true, None) => Err(LookupError::Absent),
        }
    }

    fn failure(&self, error: NetError) -> LookupError {
        match error {
            NetError::Timeout => LookupError::NoAnswer(self.time),
            NetError::Dns(DnsError::NoRecordsFound(_)) => LookupError::Absent,
            NetError::Dns(DnsError::DnssecBogus) => LookupError::NotSigned,
            NetError::Dns(DnsError::Nsec { proof, .. }) => match proof {
                Proof::Secure | Proof::Insecure => LookupError::Absent,
                _ => LookupError::NotSigned,
            },
            other => LookupError::Resolver(other.to_string()),
        }
    }
}

/// Whether DNSSEC has proved a record, or that its zone is not signed, as a zone above says.
fn is_proved(record: &Record) -> bool {
    matches!(record.proof, Proof::Secure | Proof::Insecure)
}

/// UDP first and TCP for what is longer, both at this port.
fn name_server(address: &SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    for connection in &mut server.connections {
        connection.port = address.port();
    }
    // An authoritative server may be asked directly.
    server.trust_negative_responses = true;
    server
}

impl std::fmt::Debug for TicketResolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TicketResolver")
            .field("verifies", &self.verifies)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use hickory_proto::rr::rdata::CNAME;
    use hickory_proto::rr::{Name, RData};

    use super::*;

    fn alias(proof: Proof) -> Record {
        let data = RData::CNAME(CNAME(Name::root()));
        let mut record = Record::from_rdata(Name::root(), 60, data);
        record.proof = proof;
        record
    }

    #[tokio::test]
    async fn an_answer_of_which_one_record_is_not_proved_is_refused() {
        let resolvers = vec![([127, 0, 0, 1], 53).into()];
        let plan = |dnssec| ResolverPlan {
            resolvers: resolvers.clone(),
            dnssec,
            ..ResolverPlan::default()
        };
        let verifies = TicketResolver::new(&plan(Dnssec::FromRoot)).unwrap();
        let trusts = TicketResolver::new(&plan(Dnssec::Off)).unwrap();
        let outcome = |resolver: &TicketResolver, proofs: [Proof; 2]| {
            resolver.records(&proofs.map(alias)).unwrap_err()
        };
        for missing in [Proof::Bogus, Proof::Indeterminate] {
            let proofs = [Proof::Secure, missing];
            assert_eq!(outcome(&verifies, proofs), LookupError::NotSigned, "{missing:?}");
            assert_eq!(outcome(&trusts, proofs), LookupError::Absent);
        }
        let proved = [Proof::Secure, Proof::Insecure];
        assert_eq!(outcome(&verifies, proved), LookupError::Absent, "an alias alone");
    }
}

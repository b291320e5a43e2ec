// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Failures of lookups, each told once for a server and cause.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::LookupError;
use crate::server::Server;

/// The causes that were told of each server since its last ticket.
#[derive(Debug, Default)]
pub(crate) struct Told(BTreeMap<Server, BTreeSet<Cause>>);

/// A cause without its numbers, which differ from time to time.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Cause {
    Server,
    NoAnswer,
    Absent,
    NotSigned,
    Record,
    NoChain,
    Refused,
    Resolver,
}

impl Told {
    /// Whether this is to be told: it is the first of its cause since the server's last ticket.
    pub(crate) fn is_new(&mut self, server: &Server, error: &LookupError) -> bool {
        let causes = self.0.entry(server.clone()).or_default();
        causes.insert(Cause::of(error))
    }

    /// A ticket of the server was found: whether a failure was told before.
    pub(crate) fn found(&mut self, server: &Server) -> bool {
        self.0.remove(server).is_some()
    }
}

impl Cause {
    fn of(error: &LookupError) -> Self {
        match error {
            LookupError::NoServer(_) | LookupError::SpecialName(_) => Self::Server,
            LookupError::NoAnswer(_) => Self::NoAnswer,
            LookupError::Absent => Self::Absent,
            LookupError::NotSigned => Self::NotSigned,
            LookupError::Record(_) => Self::Record,
            LookupError::NoChain => Self::NoChain,
            LookupError::Refused(_) => Self::Refused,
            LookupError::Resolver(_) | LookupError::Anchors(_) => Self::Resolver,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_cause_is_told_once_for_each_server_until_a_ticket_comes() {
        let mut told = Told::default();
        let [one, two] = ["one.example", "two.example"].map(|name| Server::new(name, 1).unwrap());
        let over = |seconds| LookupError::Refused(format!("over since {seconds} seconds"));
        assert!(told.is_new(&one, &over(1)));
        assert!(!told.is_new(&one, &over(2)));
        assert!(told.is_new(&two, &over(2)));
        assert!(told.is_new(&one, &LookupError::NoAnswer(Duration::ZERO)));
        assert!(told.found(&one));
        assert!(!told.found(&one), "a ticket after a ticket is no news");
        assert!(told.is_new(&one, &over(3)));
    }
}

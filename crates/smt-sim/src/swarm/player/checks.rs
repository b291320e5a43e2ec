// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Comparisons of what an endpoint has told or refused with what was planned.

use bytes::Bytes;
use smt_proto::{Failure as Failed, Metadata, RpcId};

use super::{Player, Underway};
use crate::net::packet::HostId;
use crate::swarm::check::{Checker, Failure, Report};

impl Player {
    pub(super) fn compare_metadata(&mut self, expected: &Metadata, found: &Metadata) {
        if expected != found {
            let text = format!("metadata {found:?} came, and {expected:?} was given");
            self.found(Checker::Content, text);
        }
    }

    /// A call has ended by a failure of its server's application: is it the one that was given?
    pub(super) fn compare_failure(&mut self, rpc: RpcId, failure: &Failed) {
        let Some(Underway { content, .. }) = self.calls.get(&rpc) else {
            return;
        };
        let names_itself = content.length >= crate::swarm::check::TINY;
        if names_itself && content.failure(failure.not_run) != *failure {
            let text = format!("message {} failed by another failure", content.number);
            self.found(Checker::Content, text);
        }
    }

    /// The endpoint has taken a message of this length.
    pub(super) fn taken(&mut self, to: HostId, length: u32) {
        if length > self.hosts.limits[to.0 as usize] {
            let text = format!("{length} B were taken for {to:?}, who does not");
            self.found(Checker::Content, text);
        }
    }

    /// The endpoint has delivered this.
    pub(super) fn within_own_limit(&mut self, body: &Bytes) {
        if body.len() > self.hosts.limits[self.id.0 as usize] as usize {
            let text = format!("{} B were delivered, which exceed the limit", body.len());
            self.found(Checker::Content, text);
        }
    }

    /// The endpoint has refused a message of this length.
    pub(super) fn refused(&mut self, to: HostId, length: usize) {
        if length <= self.hosts.limits[to.0 as usize] as usize {
            let text = format!("{length} B were refused for {to:?}, who takes them");
            self.found(Checker::Liveness, text);
        }
    }

    /// The endpoint has refused a call in parts.
    pub(super) fn refused_in_parts(&mut self, to: HostId) {
        if self.window_of(self.id) > 0 && self.window_of(to) > 0 {
            let text = format!("a call in parts was refused for {to:?}, who takes them");
            self.found(Checker::Parts, text);
        }
    }

    pub(super) fn found(&mut self, checker: Checker, text: String) {
        let text = format!("{:?}: {text}", self.id);
        let failure = Failure::new(checker, text);
        self.reports.push(Report::Found(failure));
    }
}

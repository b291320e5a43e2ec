// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The application's decision which clients a server serves.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use smt_proto::Failure;

use crate::peer::Peer;

/// The rule of the application.
#[derive(Clone)]
pub(crate) struct Authorization(Arc<Rule>);

type Rule = dyn Fn(&Peer) -> Result<(), Failure> + Send + Sync;

impl Authorization {
    pub(crate) fn new(rule: impl Fn(&Peer) -> Result<(), Failure> + Send + Sync + 'static) -> Self {
        Self(Arc::new(rule))
    }

    /// Why the peer is refused, if it is. A rule that panics refuses: the endpoint serves others.
    pub(crate) fn refusal(&self, peer: &Peer) -> Option<Box<Failure>> {
        let decided = catch_unwind(AssertUnwindSafe(|| (self.0)(peer)));
        let decided = decided.unwrap_or_else(|_| Err(Failure::refusal(0, FAILED)));
        let mut failure = decided.err()?;
        // Its requests will not run.
        failure.not_run = true;
        Some(Box::new(failure))
    }
}

/// The text of a rule that has panicked.
const FAILED: &str = "the server could not decide whether to serve this client";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_refuses_by_code_and_text_and_nothing_has_run() {
        let rule = Authorization::new(|_| Err(Failure::failed(7, "not you")));
        let refused = rule.refusal(&Peer::unknown()).unwrap();
        assert_eq!(*refused, Failure::refusal(7, "not you"));
        let rule = Authorization::new(|_| Ok(()));
        assert_eq!(rule.refusal(&Peer::unknown()), None);
    }

    #[test]
    fn a_rule_that_panics_refuses() {
        let rule = Authorization::new(|_| panic!("a bug of the rule"));
        assert_eq!(rule.refusal(&Peer::unknown()).unwrap().text, FAILED);
    }
}

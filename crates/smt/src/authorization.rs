// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The application's decision which clients a server serves, and which of their messages.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use smt_proto::{Failure, Metadata, PeerMessage};

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
        refusal(|| (self.0)(peer), FAILED).map(Box::new)
    }
}

/// The head of a message, as the rule of [`crate::Builder::authorize_messages`] sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MessageHead<'a> {
    /// The named values beside the body, as the peer has sent them: nothing has proved them.
    pub metadata: &'a Metadata,
    /// Bytes of the body, of the first part of a request in parts.
    pub body_len: usize,
    /// Whether the peer wants no reply.
    pub is_one_way: bool,
}

/// The rule of the application for each message.
#[derive(Clone)]
pub(crate) struct MessageAuthorization(Arc<MessageRule>);

type MessageRule = dyn Fn(&Peer, MessageHead<'_>) -> Result<(), Failure> + Send + Sync;

impl MessageAuthorization {
    pub(crate) fn new(
        rule: impl Fn(&Peer, MessageHead<'_>) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(rule))
    }

    /// Why the message is refused, if it is. A rule that panics refuses.
    pub(crate) fn refusal(&self, peer: &Peer, message: &PeerMessage) -> Option<Failure> {
        let head = MessageHead {
            metadata: &message.metadata,
            body_len: message.body.len(),
            is_one_way: message.is_one_way,
        };
        refusal(|| (self.0)(peer, head), MESSAGE_FAILED)
    }
}

/// The refusal that a rule has decided on, if it has. A rule that panics refuses by the text
/// `failed`.
fn refusal(rule: impl FnOnce() -> Result<(), Failure>, failed: &str) -> Option<Failure> {
    let decided = catch_unwind(AssertUnwindSafe(rule));
    let decided = decided.unwrap_or_else(|_| Err(Failure::refusal(0, failed)));
    let mut failure = decided.err()?;
    // A refused message does not run.
    failure.not_run = true;
    Some(failure)
}

/// The text of a rule for clients that has panicked.
const FAILED: &str = "the server could not decide whether to serve this client";
/// The text of a rule for messages that has panicked.
const MESSAGE_FAILED: &str = "the server could not decide whether to serve this message";

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
    fn a_rule_for_messages_sees_peer_and_head_and_refuses_if_it_panics() {
        let message = |is_one_way| PeerMessage {
            rpc: smt_proto::RpcId {
                session: smt_wire::SessionIndex(1),
                id: smt_wire::MessageId(2),
            },
            body: bytes::Bytes::from_static(b"body"),
            metadata: Metadata::new(),
            deadline: None,
            is_one_way,
            is_early: false,
            parts: smt_proto::PartMarks::default(),
        };
        let rule = MessageAuthorization::new(|peer, head| {
            assert_eq!((peer.address.port(), head.body_len), (1, 4));
            match head.is_one_way {
                true => panic!("a bug of the rule"),
                false => Err(Failure::failed(7, "not this")),
            }
        });
        let refusal = |is_one_way| rule.refusal(&Peer::unknown(), &message(is_one_way)).unwrap();
        assert_eq!(refusal(false), Failure::refusal(7, "not this"));
        assert_eq!(refusal(true).text, MESSAGE_FAILED);
        let rule = MessageAuthorization::new(|_, _| Ok(()));
        assert_eq!(rule.refusal(&Peer::unknown(), &message(false)), None);
    }

    #[test]
    fn a_rule_that_panics_refuses() {
        let rule = Authorization::new(|_| panic!("a bug of the rule"));
        assert_eq!(rule.refusal(&Peer::unknown()).unwrap().text, FAILED);
    }
}

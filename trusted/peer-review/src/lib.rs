// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accountability over attested logs: PeerReview with trusted devices (TNIC paper §7, appendix C.5;
//! Haeberlen et al., 2007).
//!
//! A node runs a deterministic [`Application`] and keeps a log of all that it takes and sends. Its
//! device attests and signs each entry, under a counter that is the entry's index: there is one
//! log, and a host can neither leave out nor change what it has said. Witnesses fetch the log and
//! run it again.
//!
//! 1. A message travels with the signed entry that sends it ([`SentMessage`]), and is answered by
//!    the signed entry that takes it ([`Receipt`]).
//! 2. A witness asks for the log with a nonce, which the node must put into it, and replays it.
//! 3. A log that the application does not make is [`Evidence`]: everybody who knows the public keys
//!    verifies it, and the node is [`Verdict::Exposed`].
//! 4. A node that shows no log, gives no receipt, or does not send what its log sends, is
//!    [`Verdict::Suspected`] until it does. Omission cannot be proved.
//!
//! [`Node`] has no input and output of its own: bytes and ticks go in, bytes come out. [`Tree`] is
//! an application: a multicast tree for streaming. The crate's README says where each rule comes
//! from.
#![forbid(unsafe_code)]

mod application;
mod audited;
mod authenticator;
mod digest;
mod entry;
mod evidence;
mod forwarding;
mod group;
mod log;
mod logged;
mod message;
mod node;
mod outbox;
#[cfg(test)]
mod schedules;
#[cfg(feature = "sim")]
pub mod sim;
mod state;
mod tree;

pub use application::{Application, Effect};
pub use audited::Suspicion;
pub use authenticator::{Authenticator, Receipt, Sent, SentMessage};
pub use entry::{Entry, Input};
pub use evidence::{Base, Evidence, Proof, Unproven};
pub use group::{Group, GroupError, Options};
pub use logged::{Event, Identity};
pub use message::{Message, Segment};
pub use node::{Node, NodeError, Output, Verdict};
pub use smt_attestor::{AttestorError, OwnDevice};
pub use smt_replica::{Digest, PublicKey, SignatureBytes};
pub use state::Fault;
pub use tree::{Content, Delivery, Tree};

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A peer that has the keys of its sessions, keeps no rule, and wants one thing: that a server
//! holds more than it may.
//!
//! The server is the real core. Its peer writes packets by hand, so that no rule of the core binds
//! it; both speak the plaintext version (SPEC §14), in which everything opens that has the form of
//! a record or of a control packet. The server is not asked how much it holds: a [`Meter`] says
//! what the process has allocated. Memory that was allocated while the server or its application
//! ran, and not freed there, is theirs. [`Bound`] says what they may hold.
//!
//! A seed gives a [`Case`]: configuration, the application's habits, and a few [`Move`]s with a
//! weight each. Thousands of seeds are the search; `examples/memory_search.rs` runs it, since it
//! counts the allocations of a whole process.

mod bound;
mod case;
mod packets;
mod peer;
mod play;
mod server;

pub use bound::Bound;
pub use case::{Case, Habits, Move};
pub use play::{Verdict, play};

/// Counts what the process has allocated.
pub trait Meter {
    /// Bytes allocated and not freed.
    fn current(&self) -> usize;
    /// The most since [`Self::restart`].
    fn most(&self) -> usize;
    /// The most is what there is now.
    fn restart(&self);
}

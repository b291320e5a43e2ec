// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How an event loop learns that a carrier has something to hand over.

use std::os::fd::BorrowedFd;

/// The descriptors that are readable while a carrier has something to hand over.
///
/// An event loop polls all of them for reading. A carrier without any can only be waited for by
/// [`Carrier::receive`](crate::Carrier::receive), in a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Readiness<'a> {
    descriptors: [Option<BorrowedFd<'a>>; 2],
}

impl<'a> Readiness<'a> {
    /// No descriptor tells.
    pub const NONE: Self = Self { descriptors: [None, None] };

    /// Either of these descriptors tells, or the one that there is.
    #[must_use]
    pub const fn of(descriptors: [Option<BorrowedFd<'a>>; 2]) -> Self {
        Self { descriptors }
    }

    /// The descriptors.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'a>> + use<'a> {
        self.descriptors.into_iter().flatten()
    }

    /// Whether no descriptor tells.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.descriptors.iter().all(Option::is_none)
    }
}

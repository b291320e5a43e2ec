// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long a message is.

use arbitrary::Arbitrary;

use crate::world::World;

/// A length, near where something changes.
#[derive(Arbitrary, Debug)]
pub(super) enum Size {
    /// Short.
    Few(u8),
    /// Any.
    Any(u16),
    /// About this many records.
    Records(u8, i8),
    /// About what needs no grant.
    Unscheduled(i8),
    /// About as many as the peer accepts.
    Most(i8),
}

impl Size {
    /// Application bytes, with what both sides are configured to.
    pub(super) fn bytes(&self, world: &World) -> usize {
        let near = |bytes: u32, distance: i8| bytes.saturating_add_signed(distance.into()) as usize;
        let bytes = match self {
            Self::Few(bytes) => (*bytes).into(),
            Self::Any(bytes) => (*bytes).into(),
            Self::Records(count, distance) => {
                let (first, rest) = world.geometry();
                near(first - 40 + rest * u32::from(*count % 40), *distance)
            }
            Self::Unscheduled(distance) => near(world.unscheduled(), *distance),
            Self::Most(distance) => near(world.message_limit(), *distance),
        };
        bytes.min(SIZE_MAX)
    }
}

/// Several times what needs no grant, and few enough to seal at every run.
const SIZE_MAX: usize = 70_000;

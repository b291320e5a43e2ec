// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that a switch has cut to their first bytes (SPEC §9.10), and forgeries of them.

use arbitrary::Arbitrary;
use smt_wire::DataHeader;

use super::made_up::MadeUp;
use super::step::take;
use crate::world::{Datagram, Forgery, World};

/// A packet that arrives as trimmed.
#[derive(Arbitrary, Debug)]
pub(super) enum Trimming {
    /// A datagram on its way: the first bytes, as many as a DATA header has and `more` beyond.
    OnItsWay { which: u8, more: u8 },
    /// The beginning of an earlier datagram, changed.
    Again(u16, Vec<Forgery>),
    /// Bytes that the input made up.
    MadeUp(MadeUp),
}

impl Trimming {
    /// Lets it arrive.
    pub(super) fn run(&self, world: &mut World) {
        if let Some(datagram) = self.datagram(world) {
            world.arrive_trimmed(&datagram);
        }
    }

    fn datagram(&self, world: &mut World) -> Option<Datagram> {
        match self {
            Self::OnItsWay { which, more } => {
                let mut datagram = take(world, *which)?;
                let left = DataHeader::LEN + usize::from(*more);
                datagram.bytes.truncate(left);
                Some(datagram)
            }
            Self::Again(which, forgeries) => {
                let mut datagram = world.forge((*which).into(), &[])?;
                datagram.bytes.truncate(DataHeader::LEN);
                world.change(&mut datagram.bytes, forgeries);
                Some(datagram)
            }
            Self::MadeUp(made_up) => Some(made_up.datagram()),
        }
    }
}

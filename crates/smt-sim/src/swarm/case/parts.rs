// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which calls of a case come in parts, and the windows of those who read them.

use super::{Action, Case};
use crate::random::Random;
use crate::swarm::check::{InParts, TINY};

impl Case {
    /// Draws a window for each host, which is 0 at some, and calls in parts. A fifth of the callers
    /// give up in between.
    pub(super) fn draw_parts(&mut self, random: &mut Random) {
        for config in &mut self.configs {
            config.part_window = match random.below(20) {
                0 => 0,
                1..9 => *random.pick(&[4_096, 4_096, 8_192]),
                9..15 => random.between(4_096, 100_000) as u32,
                _ => 256 * 1_024,
            };
        }
        let share = *random.pick(&[0, 50_000, 100_000, 300_000]);
        for planned in &mut self.plan {
            let Action::Send { sent, .. } = &mut planned.action else {
                continue;
            };
            // A server must know which call it is to answer by which parts.
            if sent.is_one_way || sent.content.length < TINY || !random.chance(share) {
                continue;
            }
            sent.parts = InParts::draw(random);
            if random.chance(200_000) {
                sent.parts.given_up_after = Some(random.below(10) as u32);
                sent.may_be_given_up = true;
            }
        }
    }
}

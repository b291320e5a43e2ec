// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lies that are in the log itself.

use crate::authenticator::body_digest;
use crate::entry::Input;
use crate::message::{decode, encode};
use crate::sim::attack::Attack;
use crate::state::{At, Made};
use crate::tree::Content;

/// The changes that a liar's host makes to its own entries; nothing by default.
#[derive(Clone, Default)]
pub(crate) struct Lie {
    pub(crate) attack: Option<Attack>,
    /// How often it lied.
    pub(crate) lies: u64,
    /// Whether the device has signed what is not the log of a correct node. This does not end.
    pub(crate) is_logged: bool,
    /// Whether the last checkpoint that was due was left out, and no entry has come since.
    has_skipped: bool,
}

impl Lie {
    /// Whether messages that the node has as a witness are not taken either.
    pub(crate) fn hides(&self) -> bool {
        let hides = [Attack::Hide, Attack::HideLater, Attack::FalseReceipt];
        self.attack.is_some_and(|it| hides.contains(&it))
    }

    /// Whether a checkpoint that is due is left out.
    pub(crate) fn skips_checkpoint(&mut self) -> bool {
        let skips = self.attack == Some(Attack::NoCheckpoint);
        self.lies += u64::from(skips);
        self.has_skipped = skips;
        skips
    }

    /// Where the liar's own state takes an input to stand.
    pub(crate) fn at<'a>(&self, at: At<'a>) -> At<'a> {
        let index = if self.attack == Some(Attack::NoCheckpoint) { 1 } else { at.index };
        At { index, ..at }
    }

    /// Whether a log that is older than its device goes on.
    pub(crate) fn restores(&self) -> bool {
        self.attack == Some(Attack::OldState)
    }

    /// Whether the log keeps what a correct node would have sent.
    pub(crate) fn rewrites(&self) -> bool {
        self.attack == Some(Attack::Rewrite)
    }

    /// The entry that is made in the place of a correct one.
    pub(crate) fn distort(&mut self, index: u64, input: Input, mut made: Made) -> (Input, Made) {
        self.is_logged |= std::mem::take(&mut self.has_skipped);
        match (self.attack, &input) {
            (Some(Attack::WrongCheckpoint), Input::Checkpoint { .. }) => {
                self.tell();
                return (Input::Checkpoint { state: [9; 32] }, made);
            }
            (Some(Attack::WrongOutput | Attack::Rewrite), _) if !made.bodies.is_empty() => {
                self.tell();
                let at = index as usize % made.bodies.len();
                if let Some(content) = decode::<Content>(&made.bodies[at]) {
                    made.bodies[at] = encode(&Content { bytes: b"wrong".to_vec(), ..content });
                    made.sent[at].body = body_digest(&made.bodies[at]);
                }
            }
            (Some(Attack::SkipForward), _) if !made.sent.is_empty() => {
                self.tell();
                made.sent.pop();
                made.bodies.pop();
            }
            _ => {}
        }
        (input, made)
    }

    /// The device signs a lie.
    fn tell(&mut self) {
        self.lies += 1;
        self.is_logged = true;
    }
}

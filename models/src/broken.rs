// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules that a variant of the protocol leaves out, and the properties that this breaks.

/// A rule that is left out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Broken {
    /// The server does not mark an id when record 0 opens ([4.2-1]).
    MarksNothing,
    /// The server answers VOIDED and does not mark the id ([4.2-1]).
    VoidsWithoutMark,
    /// A new epoch begins with an empty window ([4.2-2]).
    ForgetsMarks,
    /// The client uses counters at and above the limit ([4.2-6]).
    IgnoresLimit,
    /// The server advertises twice the window ([4.2-4]).
    AdvertisesAhead,
    /// The server answers a CANCEL by the floor before it looks for live state ([4.2-3]).
    LooksAtTheFloorFirst,
    /// The client counts control packets from 0 again in a new epoch ([4.3-1]).
    RestartsControlNumbers,
    /// Control packets are taken however often they come ([4.3-2]).
    HasNoControlWindow,
    /// A repetition has the header of its time ([5.5-1]).
    SealsRepetitionAnew,
    /// A session after a restart has the keys of the one before ([4.1-3], [16-1]).
    KeepsKeysOverRestart,
    /// The client says EPOCH_DONE while a message of the epoch is outstanding ([7.3-13]).
    SaysDoneEarly,
    /// The client says EPOCH_DONE once ([7.3-13]).
    SaysDoneOnce,
    /// The server answers EPOCH_ACK and keeps the keys ([7.3-14]).
    KeepsOldKeys,
    /// The client takes an EPOCH_ACK for any epoch, whether EPOCH_DONE was sent or not ([7.3-17]).
    TakesAnyAck,
    /// The client moves on before EPOCH_ACK ([7.3-18]).
    MovesTwice,
}

/// The rules of a variant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules(pub(crate) Option<Broken>);

impl Rules {
    /// Whether the variant leaves this rule out.
    pub(crate) fn lack(self, rule: Broken) -> bool {
        self.0 == Some(rule)
    }
}

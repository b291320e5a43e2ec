// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The properties that an exploration looks for, each as its violation.

/// A property that does not hold.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Violation {
    /// A message was delivered twice (SPEC §4.2).
    DeliveredTwice,
    /// A message was delivered of which the client was told that it will not be (SPEC §9.6).
    VoidedAndDelivered,
    /// The client was told of a delivery that has not been (SPEC §9.6).
    FalseSeen,
    /// One key has sealed two plaintexts under one number (SPEC §5.5).
    NonceReused,
    /// Something opened under an epoch that EPOCH_DONE has dropped ([7.3-14]).
    DroppedEpochOpened,
    /// The client cannot repeat a record of a message that is outstanding ([7.3-3]).
    ClientKeyLost,
    /// The server cannot open a record of a message that is outstanding ([7.3-13]).
    ServerKeyLost,
    /// An id at or above the limit was used ([4.2-6]).
    OutOfRange,
    /// The client knows a limit that the server does not have ([4.2-5]).
    FalseLimit,
    /// A control packet was taken twice ([4.3-2]).
    ControlTwice,
    /// A control packet that was not taken before was refused ([4.3-1]).
    ControlRefused,
    /// A state from which not everything ends, although nothing is lost any more.
    NeverEnds,
}

/// All of them, with the properties that reports name.
pub(crate) const ALL: [(Violation, &str); 12] = [
    (Violation::DeliveredTwice, "no message is delivered twice"),
    (Violation::VoidedAndDelivered, "a message that was voided is not delivered"),
    (Violation::FalseSeen, "SEEN is said of a message that was delivered"),
    (Violation::NonceReused, "no key seals two plaintexts under a number"),
    (Violation::DroppedEpochOpened, "nothing opens under a dropped epoch"),
    (Violation::ClientKeyLost, "the client can repeat what is outstanding"),
    (Violation::ServerKeyLost, "the server can open what is outstanding"),
    (Violation::OutOfRange, "ids are below the limit"),
    (Violation::FalseLimit, "the client's limit is one that the server has"),
    (Violation::ControlTwice, "no control packet is taken twice"),
    (Violation::ControlRefused, "a control packet that was not taken is not refused"),
    (Violation::NeverEnds, "everything ends once nothing is lost"),
];

/// The name of a property in reports.
pub(crate) fn name(violation: Violation) -> &'static str {
    let entry = ALL.iter().find(|(other, _)| *other == violation);
    entry.map_or("", |(_, name)| name)
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The things that can happen in a model.

use std::fmt::{self, Debug};

use crate::Key;

/// Something that happens.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action<E, L> {
    /// A client's request comes to a node.
    Request(u32, usize),
    /// An event happens to a node.
    Happen(u32, E),
    /// Statements of a stream come to a node, up to a counter.
    Deliver(u32, Key, u64),
    /// A liar attests a statement in a stream, which comes to a node with all that came before.
    Lie(u32, Key, L),
    /// A statement in another's name, without its MAC, comes to a node.
    Forge(u32, Key, L),
    /// A message that a correct node gives to anybody who asks comes to a node: the one that it
    /// gives now, which is its last, or an earlier one.
    Give(u32, u32, usize),
    /// Liars make up a message that is no statement, for which they attest what it needs, and
    /// show it to one node.
    Show(u32, L),
}

impl<E: Debug, L: Debug> Action<E, L> {
    /// The kind of an action, for counts.
    pub(crate) fn kind(&self) -> String {
        match self {
            Self::Request(..) => "request".into(),
            Self::Happen(_, event) => format!("event {}", first_word(event)),
            Self::Deliver(..) => "deliver".into(),
            Self::Lie(_, _, lie) => format!("lie {}", first_word(lie)),
            Self::Forge(_, _, lie) => format!("forge {}", first_word(lie)),
            Self::Give(..) => "give".into(),
            Self::Show(_, lie) => format!("show {}", first_word(lie)),
        }
    }
}

/// The name of a variant.
fn first_word(it: &impl Debug) -> String {
    let text = format!("{it:?}");
    text.split(|it: char| !it.is_alphanumeric()).next().unwrap_or_default().into()
}

impl<E: Debug, L: Debug> fmt::Display for Action<E, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(to, it) => write!(f, "request {it} comes to {to}"),
            Self::Happen(to, event) => write!(f, "{event:?} at {to}"),
            Self::Deliver(to, (device, epoch), counter) => {
                write!(f, "{to} hears {device} up to its statement {counter} in epoch {epoch}")
            }
            Self::Lie(to, (device, epoch), lie) => {
                write!(f, "{device} says to {to} in epoch {epoch}: {lie:?}")
            }
            Self::Forge(to, (device, _), lie) => {
                write!(f, "in the name of {device}, without a MAC, to {to}: {lie:?}")
            }
            Self::Give(to, from, number) => write!(f, "{to} gets state {number} of {from}"),
            Self::Show(to, lie) => write!(f, "liars show to {to}: {lie:?}"),
        }
    }
}

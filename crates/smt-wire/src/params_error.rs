// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why parameters are refused.

use core::error::Error;
use core::fmt;

use crate::params::name;

/// Why parameters are refused (SPEC §6.3): the peer's fault, and the end of the attempt.
///
/// Tags are those of the specification.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ParamsError {
    /// A mandatory parameter is not there.
    Missing(u8),
    /// A value of another length than its parameter's, or past the end of the bytes.
    Length(u8),
    /// A value that its parameter cannot have, by itself or beside the others.
    Range {
        /// The parameter.
        tag: u8,
        /// Its value.
        value: u64,
    },
    /// A parameter that does not come after the one before it: a second time, or unsorted.
    Order(u8),
}

impl fmt::Display for ParamsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Missing(tag) | Self::Length(tag) | Self::Range { tag, .. } | Self::Order(tag)) =
            *self;
        write!(f, "the peer's parameter {tag} ({}) ", name(tag))?;
        match self {
            Self::Missing(_) => f.write_str("is missing"),
            Self::Length(_) => f.write_str("has a wrong length"),
            Self::Range { value, .. } => write!(f, "has the value {value}, which is out of range"),
            Self::Order(_) => f.write_str("is not in ascending order"),
        }
    }
}

impl Error for ParamsError {}

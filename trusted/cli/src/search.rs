// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a search by simulations.

use std::fmt::{Debug, Display};
use std::io::{self, Write};

use crate::command_error::CommandError;

/// A search of many seeds.
pub(crate) struct Search<'a, R, T> {
    /// Its table.
    pub(crate) report: &'a R,
    /// How many seeds it had.
    pub(crate) count: u64,
    /// How many of them violated a property.
    pub(crate) violations: usize,
    /// Events that happened in less than a hundredth of them.
    pub(crate) rare: Vec<T>,
}

impl<R: Display, T: Debug> Search<'_, R, T> {
    /// Prints the table. Fails on a violation, and on what is rare among 400 seeds or more: few
    /// cannot tell.
    pub(crate) fn conclude(self) -> Result<(), CommandError> {
        writeln!(io::stdout().lock(), "{}", self.report)?;
        let rare = if self.count < 400 { Vec::new() } else { self.rare };
        if self.violations == 0 && rare.is_empty() {
            return Ok(());
        }
        Err(CommandError::Search { violations: self.violations, rare: format!("{rare:?}") })
    }
}

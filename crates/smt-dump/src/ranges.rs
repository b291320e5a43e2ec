// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ranges of a run of bytes that have come.

/// Ranges, in order, none touching another.
#[derive(Debug, Default)]
pub(crate) struct Ranges(Vec<(usize, usize)>);

impl Ranges {
    /// Adds a range, unless it is empty.
    pub(crate) fn add(&mut self, mut start: usize, mut end: usize) {
        if start >= end {
            return;
        }
        self.0.retain(|&(from, to)| {
            let touches = from <= end && start <= to;
            if touches {
                (start, end) = (start.min(from), end.max(to));
            }
            !touches
        });
        let place = self.0.partition_point(|&(from, _)| from < start);
        self.0.insert(place, (start, end));
    }

    /// Whether they are all of a run of this length.
    pub(crate) fn cover(&self, length: usize) -> bool {
        length == 0 || matches!(self.0[..], [(0, end)] if end >= length)
    }
}

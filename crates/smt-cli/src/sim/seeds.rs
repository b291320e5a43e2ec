// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which seeds a swarm plays: numbers from a first one on, or those of a file.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::failure::{Doing, Failure};

/// Seeds in the order in which they are played.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Seeds {
    /// `left` seeds from `next` on.
    Counted { next: u64, left: u64 },
    /// The last is the next.
    Listed(Vec<u64>),
}

impl Seeds {
    /// Counts up from `first`; without it from a number that the clock gives.
    pub(super) fn counted(first: Option<u64>, count: Option<u64>) -> Self {
        Self::Counted { next: first.unwrap_or_else(from_clock), left: count.unwrap_or(u64::MAX) }
    }

    /// One seed a line; `#` begins a comment.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).doing(format!("reading {}", path.display()))?;
        let mut listed = Vec::new();
        for (place, line) in text.lines().enumerate() {
            let word = line.split('#').next().unwrap_or_default().trim();
            if word.is_empty() {
                continue;
            }
            let seed = word.parse().map_err(|_| {
                Failure::new(format!(
                    "{}:{}: {word:?} is no seed: write one whole number a line, at most {}",
                    path.display(),
                    place + 1,
                    u64::MAX
                ))
            })?;
            listed.push(seed);
        }
        if listed.is_empty() {
            return Err(Failure::new(format!("{} has no seed", path.display())));
        }
        listed.reverse();
        Ok(Self::Listed(listed))
    }

    /// How many there are. `None`: as many as time permits.
    pub(super) fn total(&self) -> Option<u64> {
        match self {
            Self::Counted { left: u64::MAX, .. } => None,
            Self::Counted { left, .. } => Some(*left),
            Self::Listed(listed) => Some(listed.len() as u64),
        }
    }

    /// The first of those that are counted.
    pub(super) fn first(&self) -> Option<u64> {
        match self {
            Self::Counted { next, .. } => Some(*next),
            Self::Listed(_) => None,
        }
    }
}

impl Iterator for Seeds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match self {
            Self::Counted { next, left } => {
                *left = left.checked_sub(1)?;
                let seed = *next;
                *next = seed.wrapping_add(1);
                Some(seed)
            }
            Self::Listed(listed) => listed.pop(),
        }
    }
}

/// Microseconds: two swarms that begin at different times play different seeds, since no seed is
/// played as fast; and programs that know only floating-point numbers still read them exactly
/// (below 2^53).
fn from_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a file with this content.
    fn read(name: &str, content: &str) -> Result<Vec<u64>, String> {
        let path = std::env::temp_dir().join(format!("smt-seeds-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        let result = Seeds::read(&path);
        std::fs::remove_file(&path).unwrap();
        result.map(Iterator::collect).map_err(|failure| failure.text().to_owned())
    }

    #[test]
    fn a_file_has_a_seed_a_line_and_comments() {
        let seeds = read("good", "# why\n\n17\n  3 # that one\n18446744073709551615\r\n");
        assert_eq!(seeds, Ok(vec![17, 3, u64::MAX]));
    }

    #[test]
    fn a_file_without_seeds_is_a_mistake() {
        for empty in ["", "# none\n"] {
            let text = read("empty", empty).unwrap_err();
            assert!(text.ends_with("-empty has no seed"), "{text}");
        }
    }

    #[test]
    fn a_wrong_line_is_named() {
        for wrong in ["seed", "-1", "1 2", "0x11", "18446744073709551616"] {
            let text = read("wrong", &format!("1\n# 2\n{wrong}\n")).unwrap_err();
            assert!(text.contains("wrong:3: ") && text.contains(wrong), "{text}");
        }
    }

    #[test]
    fn numbers_count_up_past_the_largest() {
        let seeds = Seeds::counted(Some(u64::MAX), Some(3));
        assert_eq!(seeds.total(), Some(3));
        assert_eq!(seeds.collect::<Vec<_>>(), [u64::MAX, 0, 1]);
        assert_eq!(Seeds::counted(None, None).total(), None);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Randomness for TLS, lent for the time of one call.
//!
//! rustls wants its randomness as a `'static` value; here it is the thread's, and only while a
//! generator is lent to the thread. Outside of that drawing fails, so nothing random can slip in.

use std::cell::RefCell;

use rustls::crypto::{GetRandomFailed, SecureRandom};

use crate::random::Random;

thread_local! {
    static LENT: RefCell<Option<Random>> = const { RefCell::new(None) };
}

/// Draws from the generator that is lent to the thread.
#[derive(Debug)]
pub(crate) struct SeededRandom;

impl SecureRandom for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        LENT.with_borrow_mut(|lent| {
            lent.as_mut().ok_or(GetRandomFailed)?.fill(bytes);
            Ok(())
        })
    }
}

/// Lends a generator to what `call` does.
pub(crate) fn lend<T>(random: &mut Random, call: impl FnOnce() -> T) -> T {
    let before = LENT.replace(Some(random.clone()));
    let _returned = Returned { random, before };
    call()
}

/// Takes the generator back, also when the call panics.
struct Returned<'a> {
    random: &'a mut Random,
    before: Option<Random>,
}

impl Drop for Returned<'_> {
    fn drop(&mut self) {
        if let Some(used) = LENT.replace(self.before.take()) {
            *self.random = used;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_unless_it_was_lent() {
        assert!(SeededRandom.fill(&mut [0; 8]).is_err());
        let mut random = Random::new(1);
        let mut one = [0; 8];
        lend(&mut random, || SeededRandom.fill(&mut one)).unwrap();
        let mut other = [0; 8];
        lend(&mut random, || SeededRandom.fill(&mut other)).unwrap();
        assert_ne!(one, other);
        assert!(SeededRandom.fill(&mut one).is_err());
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tells a report of the past from a failure of the call that came across it.
//!
//! 1. A connected socket hands an ICMP report about an earlier datagram to the next call, whatever
//!    that is, and the call then does nothing else. By its code alone a report may look like a
//!    refusal of this very call.
//! 2. Once told, a report is gone. A call that failed is therefore made once more.
//! 3. A failure that comes twice alike is about the call; else the first failure was about the
//!    past.
//!
//! Not here: the consequences of either (`sending.rs`, `capabilities.rs`).

use super::trouble::Trouble;

/// Makes `call` on a connected socket, once more if it fails: how it went, and the report that was
/// in its way.
pub(super) fn told_apart(
    call: impl Fn() -> Result<(), Trouble>,
) -> (Result<(), Trouble>, Option<Trouble>) {
    let first = match call() {
        // No report is told so, and a full queue would be as full.
        outcome @ (Ok(()) | Err(Trouble::Full | Trouble::Interrupted)) => return (outcome, None),
        Err(trouble) => trouble,
    };
    let outcome = call();
    (outcome, (outcome != Err(first)).then_some(first))
}

#[cfg(test)]
mod tests {
    use super::{Trouble, told_apart};

    mod told_apart {
        use super::{Trouble, told_apart};
        use std::cell::Cell;

        const REFUSED: Trouble = Trouble::Refused(libc::EINVAL);

        /// Makes a call of which the first fails by `first`, and others end by `then`; and how many
        /// calls that took.
        fn told(
            first: Trouble,
            then: Result<(), Trouble>,
        ) -> ((Result<(), Trouble>, Option<Trouble>), usize) {
            let calls = Cell::new(0);
            let told = told_apart(|| {
                calls.set(calls.get() + 1);
                if calls.get() == 1 { Err(first) } else { then }
            });
            (told, calls.get())
        }

        #[test]
        fn call_that_succeeds_is_made_once() {
            let calls = Cell::new(0);
            let told = told_apart(|| {
                calls.set(calls.get() + 1);
                Ok(())
            });
            assert_eq!((told, calls.get()), ((Ok(()), None), 1));
        }

        #[test]
        fn full_queue_is_told_at_once() {
            for trouble in [Trouble::Full, Trouble::Interrupted] {
                assert_eq!(told(trouble, Ok(())), ((Err(trouble), None), 1));
            }
        }

        #[test]
        fn whatever_a_second_call_does_not_meet_was_a_report() {
            let other = Trouble::Other(libc::EPERM);
            for trouble in [other, REFUSED, Trouble::TooLarge, Trouble::Unreachable] {
                assert_eq!(told(trouble, Ok(())), ((Ok(()), Some(trouble)), 2));
            }
        }

        #[test]
        fn what_fails_twice_alike_is_about_the_call() {
            for trouble in [REFUSED, Trouble::TooLarge, Trouble::Unreachable] {
                assert_eq!(told(trouble, Err(trouble)), ((Err(trouble), None), 2));
            }
        }

        #[test]
        fn report_ahead_of_another_failure_is_both() {
            for trouble in [REFUSED, Trouble::Full, Trouble::TooLarge] {
                let both = (Err(trouble), Some(Trouble::Unreachable));
                assert_eq!(told(Trouble::Unreachable, Err(trouble)), (both, 2));
            }
        }
    }
}

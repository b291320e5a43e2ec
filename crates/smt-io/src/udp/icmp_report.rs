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
//! Not here: the consequences of either (`sending.rs`, `offload_state.rs`).

use super::errno_class::ErrnoClass;

/// Makes `call` on a connected socket, once more if it fails: how it went, and the report that was
/// in its way.
pub(super) fn told_apart(
    call: impl Fn() -> Result<(), ErrnoClass>,
) -> (Result<(), ErrnoClass>, Option<ErrnoClass>) {
    let first = match call() {
        // No report is told so, and a full queue would be as full.
        outcome @ (Ok(()) | Err(ErrnoClass::Full | ErrnoClass::Interrupted)) => {
            return (outcome, None);
        }
        Err(class) => class,
    };
    let outcome = call();
    (outcome, (outcome != Err(first)).then_some(first))
}

#[cfg(test)]
mod tests {
    use super::{ErrnoClass, told_apart};

    mod told_apart {
        use super::{ErrnoClass, told_apart};
        use std::cell::Cell;

        const REFUSED: ErrnoClass = ErrnoClass::Refused(libc::EINVAL);

        /// Makes a call of which the first fails by `first`, and others end by `then`; and how many
        /// calls that took.
        fn told(
            first: ErrnoClass,
            then: Result<(), ErrnoClass>,
        ) -> ((Result<(), ErrnoClass>, Option<ErrnoClass>), usize) {
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
            for class in [ErrnoClass::Full, ErrnoClass::Interrupted] {
                assert_eq!(told(class, Ok(())), ((Err(class), None), 1));
            }
        }

        #[test]
        fn whatever_a_second_call_does_not_meet_was_a_report() {
            let other = ErrnoClass::Other(libc::EPERM);
            for class in [other, REFUSED, ErrnoClass::TooLarge, ErrnoClass::Unreachable] {
                assert_eq!(told(class, Ok(())), ((Ok(()), Some(class)), 2));
            }
        }

        #[test]
        fn what_fails_twice_alike_is_about_the_call() {
            for class in [REFUSED, ErrnoClass::TooLarge, ErrnoClass::Unreachable] {
                assert_eq!(told(class, Err(class)), ((Err(class), None), 2));
            }
        }

        #[test]
        fn report_ahead_of_another_failure_is_both() {
            for class in [REFUSED, ErrnoClass::Full, ErrnoClass::TooLarge] {
                let both = (Err(class), Some(ErrnoClass::Unreachable));
                assert_eq!(told(ErrnoClass::Unreachable, Err(class)), (both, 2));
            }
        }
    }
}

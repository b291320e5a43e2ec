// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Panics as results, with the place where they happened.
//!
//! Only the process-wide hook learns the place, so it leaves a note in the panicking thread, and
//! [`catch`] takes it from there. A panic outside of [`catch`] is reported as ever.

use std::cell::RefCell;
use std::panic::{self, PanicHookInfo, UnwindSafe};
use std::sync::Once;

/// Runs `call`, and returns its result or a line about its panic.
pub(super) fn catch<T>(call: impl FnOnce() -> T + UnwindSafe) -> Result<T, String> {
    HOOK.call_once(install);
    NOTE.set(Some(String::new()));
    let result = panic::catch_unwind(call);
    let note = NOTE.take().unwrap_or_default();
    result.map_err(|_| note)
}

fn install() {
    let usual = panic::take_hook();
    // A user who wants backtraces gets the usual report too.
    let is_traced = std::env::var_os("RUST_BACKTRACE").is_some();
    panic::set_hook(Box::new(move |panic| {
        let is_caught = NOTE.with_borrow_mut(|note| {
            let note = note.as_mut();
            note.map(|note| *note = one_line(panic)).is_some()
        });
        if is_traced || !is_caught {
            usual(panic);
        }
    }));
}

fn one_line(panic: &PanicHookInfo<'_>) -> String {
    let text = panic.to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

static HOOK: Once = Once::new();

thread_local! {
    /// `Some` while [`catch`] runs: how the thread has panicked.
    static NOTE: RefCell<Option<String>> = const { RefCell::new(None) };
}

#[cfg(test)]
mod tests {
    mod catch {
        use super::super::catch;

        #[test]
        fn a_panic_is_told_with_its_place_in_one_line() {
            let text = catch(|| assert_eq!(1, 2, "not\nequal")).unwrap_err();
            assert!(text.contains("panics.rs:"), "{text}");
            assert!(text.contains("not equal left: 1 right: 2"), "{text}");
        }

        #[test]
        fn a_result_is_passed_on_also_after_a_panic() {
            assert!(catch(|| panic!("first")).is_err());
            assert_eq!(catch(|| 7), Ok(7));
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host that writes between any two accesses of the device, for searches that can be replayed.
//!
//! Two threads over one memory interleave as they like, and no seed brings an interleaving back.
//! Here the host's writes come from inside the device's accesses: all of them at places that
//! follow from a seed.

use std::cell::RefCell;

use crate::shared_memory::SharedMemory;

/// A write of the host before an access to the word with this number.
pub type Change = Box<dyn FnMut(&SharedMemory, usize)>;

thread_local! {
    static CHANGE: RefCell<Option<Change>> = const { RefCell::new(None) };
}

/// Calls `run`, and `change` before each access of this thread to any shared memory meanwhile.
/// The accesses of `change` itself are left out.
pub fn with<T>(change: Change, run: impl FnOnce() -> T) -> T {
    CHANGE.set(Some(change));
    let done = run();
    CHANGE.set(None);
    done
}

/// Has the host write before the device reads or writes a word.
pub(crate) fn before_access(memory: &SharedMemory, index: usize) {
    let taken = CHANGE.with_borrow_mut(Option::take);
    if let Some(mut change) = taken {
        change(memory, index);
        CHANGE.set(Some(change));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn a_change_comes_before_each_access_and_none_comes_afterwards() {
        let (memory, _) = SharedMemory::create().unwrap();
        let count: Change = Box::new(|memory, index| {
            memory.word(index).fetch_add(1, Ordering::Relaxed);
        });
        let read = || memory.word(5).load(Ordering::Relaxed);
        assert_eq!(with(count, || [read(), read()]), [1, 2]);
        assert_eq!(read(), 2);
    }
}

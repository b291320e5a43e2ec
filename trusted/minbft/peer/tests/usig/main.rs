// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device behind the trait of `usig`: that crate's own tests over both kinds of device, and the
//! refusals for which a device is there.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod group;
mod refusals;

/// The tests of the crate `usig` over the kernel in this process.
mod library {
    usig::tests!(crate::group::next_library());
}

/// The same tests over device processes.
mod process {
    usig::tests!(crate::group::next_process());
}

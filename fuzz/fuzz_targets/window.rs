// SPDX-License-Identifier: Apache-2.0 OR MIT
//! See [`smt_fuzz::window`].
#![no_main]

use smt_fuzz::window;

libfuzzer_sys::fuzz_target!(|case: window::Case| window::check(&case));

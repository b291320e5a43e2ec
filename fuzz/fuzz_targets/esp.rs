// SPDX-License-Identifier: Apache-2.0 OR MIT
//! See [`smt_fuzz::esp`].
#![no_main]

use smt_fuzz::esp;

libfuzzer_sys::fuzz_target!(|case: esp::Case| esp::check(&case));

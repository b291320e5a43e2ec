// SPDX-License-Identifier: Apache-2.0 OR MIT
//! See [`smt_fuzz::epoch`].
#![no_main]

use smt_fuzz::epoch;

libfuzzer_sys::fuzz_target!(|case: epoch::Case| epoch::check(&case));

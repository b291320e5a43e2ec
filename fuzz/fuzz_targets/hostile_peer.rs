// SPDX-License-Identifier: Apache-2.0 OR MIT
//! See [`smt_fuzz::hostile_peer`].
#![no_main]

use smt_fuzz::hostile_peer;

libfuzzer_sys::fuzz_target!(|case: hostile_peer::Case| hostile_peer::check(&case));

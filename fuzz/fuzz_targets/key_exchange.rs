// SPDX-License-Identifier: Apache-2.0 OR MIT
//! See [`smt_fuzz::key_exchange`].
#![no_main]

use smt_fuzz::key_exchange;

libfuzzer_sys::fuzz_target!(|case: key_exchange::Case| key_exchange::check(&case));

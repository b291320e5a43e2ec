// SPDX-License-Identifier: Apache-2.0 OR MIT
//! See [`smt_fuzz::record`].
#![no_main]

use smt_fuzz::record;

libfuzzer_sys::fuzz_target!(|case: record::Case| record::check(&case));

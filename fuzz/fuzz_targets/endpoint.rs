// SPDX-License-Identifier: Apache-2.0 OR MIT
//! See [`smt_fuzz::script`].
#![no_main]

use smt_fuzz::script;

libfuzzer_sys::fuzz_target!(|case: script::Case| script::check_endpoint(&case));

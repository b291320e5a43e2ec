// SPDX-License-Identifier: Apache-2.0 OR MIT
//! See [`smt_fuzz::handover`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| smt_fuzz::handover::check(input));

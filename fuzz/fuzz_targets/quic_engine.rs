// SPDX-License-Identifier: Apache-2.0 OR MIT
//! See [`smt_fuzz::quic_engine`].
#![no_main]

use smt_fuzz::quic_engine;

libfuzzer_sys::fuzz_target!(|case: quic_engine::Case| quic_engine::check(&case));

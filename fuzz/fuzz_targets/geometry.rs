// SPDX-License-Identifier: Apache-2.0 OR MIT
//! See [`smt_fuzz::geometry`].
#![no_main]

use smt_fuzz::geometry;

libfuzzer_sys::fuzz_target!(|case: geometry::Case| geometry::check(&case));

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! See [`smt_fuzz::ticket_flight`].
#![no_main]

use smt_fuzz::ticket_flight;

libfuzzer_sys::fuzz_target!(|case: ticket_flight::SecondCase| ticket_flight::check_second(&case));

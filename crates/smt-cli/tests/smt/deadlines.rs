// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Deadlines of calls: each is accepted, also one that is shorter than any handshake.

use std::net::UdpSocket;

use crate::program::{Files, Serving};

#[test]
fn a_deadline_of_any_length_is_accepted() {
    let files = Files::new();
    let serving = Serving::start(&files, &["--echo"]);
    for deadline in ["2h", "9000h", "61m", "1h"] {
        let outcome = files.run_call(serving.address(), &["--deadline", deadline], b"hi");
        assert_eq!(outcome.text(), "hi", "{deadline}");
    }
    // No call is made so soon, however quick the handshake is.
    for deadline in ["7ns", "20us"] {
        let outcome = files.run_call(serving.address(), &["--deadline", deadline], b"hi");
        outcome.fails(3, &["limit: ", "deadline"]);
    }
}

#[test]
fn a_deadline_shorter_than_a_handshake_is_told_as_such_and_not_as_silence() {
    let files = Files::new();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    for (deadline, shown) in [("20us", "20.0 us"), ("500us", "500 us"), ("5ms", "5.00 ms")] {
        let told = format!(
            "smt: connect to {address}: limit: the deadline of {shown} passed before a session \
             with the server had come about\n"
        );
        let outcome = files.run_call(&address, &["--deadline", deadline], b"hi");
        outcome.fails(3, &[]);
        assert_eq!(outcome.errors, told);
    }
}

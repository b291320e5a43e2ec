// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The TLS connection under bootstrapping.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{TcpListener, TcpStream};

use smt_bootstrap::{BootstrapError, Message, public_key as public, tls};

#[test]
fn both_ends_have_each_others_key_and_the_same_exporter() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let controller = std::thread::spawn(move || {
        let socket = listener.accept().unwrap().0;
        let mut connection = tls::accept(socket, &[1; 32], &public(&[2; 32])).unwrap();
        connection.send(&Message::Nonce([7; 32]).encode()).unwrap();
        connection.binding
    });
    let mut vendor = tls::connect(TcpStream::connect(address).unwrap(), &[2; 32]).unwrap();
    assert_eq!(*vendor.receive().unwrap(), *Message::Nonce([7; 32]).encode());
    let controller = controller.join().unwrap();
    assert_eq!(vendor.binding.peer, public(&[1; 32]));
    assert_eq!(controller.peer, public(&[2; 32]));
    assert_eq!(controller.exporter, vendor.binding.exporter);
    assert_ne!(controller.exporter, [0; 32]);
}

#[test]
fn another_vendor_gets_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let controller = std::thread::spawn(move || {
        let socket = listener.accept().unwrap().0;
        tls::accept(socket, &[1; 32], &public(&[2; 32])).map(|it| it.binding)
    });
    // The vendor's handshake may end before the controller refuses; then reading fails.
    let stranger = tls::connect(TcpStream::connect(address).unwrap(), &[3; 32]);
    assert!(stranger.and_then(|mut it| it.receive()).is_err());
    assert!(matches!(controller.join().unwrap(), Err(BootstrapError::Tls(_))));
}

#[test]
fn a_peer_without_a_key_gets_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let controller = std::thread::spawn(move || {
        let socket = listener.accept().unwrap().0;
        tls::accept(socket, &[1; 32], &public(&[2; 32])).map(|it| it.binding)
    });
    let mut socket = TcpStream::connect(address).unwrap();
    std::io::Write::write_all(&mut socket, b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert!(matches!(controller.join().unwrap(), Err(BootstrapError::Tls(_))));
}

#[test]
fn a_message_that_is_too_long_is_refused_before_it_has_memory() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let controller = std::thread::spawn(move || {
        let socket = listener.accept().unwrap().0;
        let mut connection = tls::accept(socket, &[1; 32], &public(&[2; 32])).unwrap();
        connection.receive().map(|_| ())
    });
    let mut vendor = tls::connect(TcpStream::connect(address).unwrap(), &[2; 32]).unwrap();
    // The controller may be gone before all of it is sent.
    let _ = vendor.send(&Message::Image(vec![0; smt_bootstrap::MESSAGE_LEN_MAX]).encode());
    assert!(matches!(controller.join().unwrap(), Err(BootstrapError::Malformed(_))));
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server that gives the answers of etcd that a test wants.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use crate::chain::config::EtcdConfig;
use crate::chain::etcd::Etcd;

/// An etcd that gives these answers, one to each request; returns what was asked.
pub(crate) fn answer(answers: &[(&str, &str)]) -> (Etcd, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoints = vec![format!("http://{}", listener.local_addr().unwrap())];
    let text = |(status, body): &(&str, &str)| {
        let length = body.len();
        let header = format!("Content-Length: {length}\r\nConnection: close");
        format!("HTTP/1.1 {status}\r\n{header}\r\n\r\n{body}")
    };
    let texts: Vec<String> = answers.iter().map(text).collect();
    let asked = thread::spawn(move || {
        let mut all = Vec::new();
        for text in texts {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            // JSON of a transaction ends with the brace of its object.
            while asked.last() != Some(&b'}') {
                let mut bytes = [0; 4096];
                let count = stream.read(&mut bytes).unwrap();
                asked.extend_from_slice(&bytes[..count]);
            }
            // An answer that is too long is not read to its end.
            let _ = stream.write_all(text.as_bytes());
            all.push(String::from_utf8(asked).unwrap());
        }
        all
    });
    let config = EtcdConfig { endpoints, prefix: "p".to_owned(), poll_ms: 10 };
    (Etcd::new(config), asked)
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Inputs that look random and are not, and the way from a session's secrets to their bytes.

use std::sync::{Arc, Mutex};

use aws_lc_rs::digest::{SHA256, digest};
use smt_record::{AwsLc, KeyLog, KeyLogContext, KeyLogEntry, Prk, Side, Suite};
use smt_wire::SessionIndex;

/// `length` bytes that depend on `label` only.
pub(crate) fn bytes(label: &str, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut block = digest(&SHA256, label.as_bytes());
    while bytes.len() < length {
        bytes.extend_from_slice(block.as_ref());
        block = digest(&SHA256, block.as_ref());
    }
    bytes.truncate(length);
    bytes
}

pub(crate) fn array(label: &str) -> [u8; 32] {
    let mut array = [0; 32];
    array.copy_from_slice(&bytes(label, 32));
    array
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn code(suite: Suite) -> String {
    format!("{:04x}", suite.code())
}

pub(crate) fn key_and_iv(suite: Suite, secret: &[u8]) -> (Vec<u8>, [u8; 12]) {
    let (mut key, mut iv) = (vec![0; suite.key_len()], [0; 12]);
    let prk = Prk::new(&AwsLc, suite, secret);
    prk.expand_label("key", b"", &mut key);
    prk.expand_label("iv", b"", &mut iv);
    (key, iv)
}

/// Keeps the lines of the key log: the secrets, in the order data, control of epoch 0, 1, ...
#[derive(Default)]
pub(crate) struct Lines(Mutex<Vec<String>>);

impl Lines {
    pub(crate) fn context(self: &Arc<Self>, side: Side) -> Option<KeyLogContext> {
        let log: Arc<dyn KeyLog> = Arc::clone(self) as _;
        Some(KeyLogContext { log, index: SessionIndex(1), side })
    }

    /// The secrets of one purpose, as hex, by epoch.
    pub(crate) fn secrets(&self, purpose: &str) -> Vec<String> {
        let lines = self.0.lock().expect("no other thread");
        lines
            .iter()
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .filter(|words| words[3] == purpose)
            .map(|words| words[6].to_owned())
            .collect()
    }
}

impl KeyLog for Lines {
    fn log(&self, line: &KeyLogEntry<'_>) {
        self.0.lock().expect("no other thread").push(line.to_string());
    }
}

pub(crate) fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).expect("written by this program"))
        .collect()
}

/// Why the library that makes the vectors is never unavailable.
pub(crate) const ALWAYS: &str = "aws-lc can always try";

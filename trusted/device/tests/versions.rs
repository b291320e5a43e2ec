// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Devices that earlier versions have made.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use smt_attestation::DeviceId;
use smt_device::{Store, StoreError};
use smt_device_client::SecretNumber;
use smt_test_machine::Directory;
use zeroize::Zeroizing;

const ROOT: [u8; 32] = [5; 32];

/// The files of a device without a TPM as version 1 wrote them, in epoch 6, with the secret 1.
fn write_version_1(directory: &Path) {
    let head = [b"SMT device v1\0\0\0".as_slice(), &3_u32.to_be_bytes()].concat();
    std::fs::create_dir_all(directory).unwrap();
    let keys = [&head[..], &[0], &ROOT].concat();
    std::fs::write(directory.join("keys"), keys).unwrap();
    let keyed = <Hmac<Sha256> as KeyInit>::new_from_slice(&ROOT).unwrap();
    let key = keyed.chain_update(b"SMT device state").finalize().into_bytes();
    let clear = [&6_u64.to_be_bytes()[..], &1_u32.to_be_bytes(), &[7; 32]].concat();
    let payload = Payload { msg: &clear, aad: &head };
    let sealed = XChaCha20Poly1305::new_from_slice(&key).unwrap();
    let sealed = sealed.encrypt(&XNonce::from([1; 24]), payload).unwrap();
    std::fs::write(directory.join("state"), [&[1; 24][..], &sealed].concat()).unwrap();
}

#[test]
fn a_device_of_version_1_goes_on_and_remembers_no_logs() {
    let directory = Directory::new();
    write_version_1(&directory.0);
    for epoch in 7..9 {
        let mut store = Store::open(&directory.0, None).unwrap();
        assert_eq!(store.device(), DeviceId(3));
        assert!(store.secrets().any(|(number, _)| number == SecretNumber(1)));
        assert_eq!(store.next_epoch(None).unwrap().0, epoch);
        assert!(matches!(store.open_logs(None), Err(StoreError::HasNoMemory)));
    }
    let mut store = Store::open(&directory.0, None).unwrap();
    store.add_secret(SecretNumber(2), Zeroizing::new([9; 32])).unwrap();
}

/// A file says its version in clear, and what it is bound to says it too.
#[test]
fn a_device_is_not_made_older_by_its_files() {
    let directory = Directory::new();
    drop(Store::create(&directory.0, DeviceId(3), None).unwrap());
    let path = directory.0.join("keys");
    let mut keys = std::fs::read(&path).unwrap();
    keys[12] = b'1';
    std::fs::write(&path, keys).unwrap();
    assert!(matches!(Store::open(&directory.0, None), Err(StoreError::Altered("state"))));
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys whose secrets are known, so that records can be sealed past the crate's sealing rules.

use smt_record::{
    Aead, AeadProvider, AwsLc, KeyLimits, OpenKeys, Prk, SealKeys, SessionSecrets, Suite,
};

/// The session's secrets: every byte of each says which one it is.
pub(super) fn secrets(suite: Suite) -> SessionSecrets {
    let labels = SessionSecrets::EXPORTER_LABELS;
    let exported = SessionSecrets::from_exporter(suite, &[0; 32], |out, label, _| {
        let which = labels.iter().position(|known| *known == label);
        out.fill(which.ok_or(())? as u8);
        Ok::<(), ()>(())
    });
    exported.expect("every label is known")
}

/// The keys by which the client seals and the server opens.
pub(super) fn pair(suite: Suite) -> (SealKeys, OpenKeys) {
    let limits = KeyLimits::default();
    (
        SealKeys::new(secrets(suite).client, suite, limits, None),
        OpenKeys::new(secrets(suite).client, suite, limits, None),
    )
}

/// The key of one secret, by SPEC §7.1: 0 is that of the client's records.
pub(super) fn aead_of(suite: Suite, secret: u8) -> Box<dyn Aead> {
    let secret = [secret; 48];
    let secret = &secret[..suite.hash_len()];
    let (mut key, mut iv) = ([0; 32], [0; 12]);
    let key = &mut key[..suite.key_len()];
    let prk = Prk::new(&AwsLc, suite, secret);
    prk.expand_label("key", b"", key);
    prk.expand_label("iv", b"", &mut iv);
    AwsLc.aead(suite, key, iv).expect("aws-lc can always try")
}

/// A record of this plaintext, whatever that is.
pub(super) fn seal(aead: &dyn Aead, sequence: u64, plaintext: &[u8]) -> Vec<u8> {
    let length = u16::try_from(plaintext.len() + 16).expect("records are short");
    let [high, low] = length.to_be_bytes();
    let mut record = vec![0x17, 3, 3, high, low];
    let aad: [u8; 5] = record[..].try_into().expect("5 bytes");
    record.extend_from_slice(plaintext);
    let tag = aead.seal(sequence, &aad, &mut record[5..]);
    let tag = tag.expect("aws-lc can always try");
    record.extend_from_slice(&tag);
    record
}

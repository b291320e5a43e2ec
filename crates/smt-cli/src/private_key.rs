// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Private keys in files, and the passphrases of those that are encrypted.
//!
//! 1. The key is read. If it is not encrypted, that is all.
//! 2. Else the passphrase comes from the file of `--passphrase-file`, or from the terminal, which
//!    does not show it. Never from an argument or the environment, which other processes can read.
//! 3. The key is opened. Passphrase and key are zeroized.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use smt::pki::decrypt_key;
use smt::{CredentialError, Identity, KeyEncryption, Pem};
use zeroize::Zeroizing;

use crate::failure::{Doing, Failure};

/// Where the passphrase of an encrypted key comes from.
#[derive(Args, Clone, Debug)]
pub(crate) struct Passphrase {
    /// Open an encrypted private key with the first line of this file; without it the terminal is
    /// asked
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl Passphrase {
    /// The certificate chain and the private key in these files.
    pub(crate) fn identity(&self, chain: &Path, key: &Path) -> Result<Identity, Failure> {
        let chain = Pem::read(chain)?;
        Ok(Identity::from_pems(&chain, &self.key(key)?)?)
    }

    /// The private key in this file, opened if it is encrypted.
    pub(crate) fn key(&self, path: &Path) -> Result<Pem, Failure> {
        let key = Pem::read(path)?;
        let Some(KeyEncryption::Pkcs8(_)) = key.encryption() else {
            return Ok(key);
        };
        let passphrase = match &self.passphrase_file {
            Some(path) => first_line(path)?,
            None => ask(&key)?,
        };
        Ok(decrypt_key(key, &passphrase)?)
    }
}

fn first_line(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let shown = path.display();
    let file = File::open(path).doing(format!("reading the passphrase in {shown}"))?;
    // The buffer never grows, so that no copy of a passphrase is left behind.
    let mut line = Zeroizing::new(Vec::with_capacity(PASSPHRASE_BYTES_MAX + 1));
    file.take(PASSPHRASE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut line)
        .doing(format!("reading the passphrase in {shown}"))?;
    let end = line.iter().position(|byte| *byte == b'\n');
    if end.is_none() && line.len() > PASSPHRASE_BYTES_MAX {
        return Err(Failure::new(format!(
            "the first line of {shown} has more than {PASSPHRASE_BYTES_MAX} bytes, and no passphrase has"
        )));
    }
    let length = end.unwrap_or(line.len());
    line.truncate(length);
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    if line.is_empty() {
        return Err(Failure::new(format!(
            "the first line of {shown} is empty, and no passphrase is"
        )));
    }
    Ok(line)
}

fn ask(key: &Pem) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let place = key.place();
    let Ok(passphrase) = rpassword::prompt_password(format!("passphrase of {place}: ")) else {
        // Without a terminal.
        let place = place.to_owned();
        return Err(CredentialError::EncryptedKey { place }.into());
    };
    Ok(Zeroizing::new(passphrase.into_bytes()))
}

/// The bytes of a passphrase, at most.
const PASSPHRASE_BYTES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    mod first_line {
        use super::super::*;
        use crate::scratch::Scratch;

        #[test]
        fn line_ends_are_no_part_of_a_passphrase() {
            let scratch = Scratch::new().unwrap();
            let path = scratch.path().join("passphrase");
            for text in ["open sesame", "open sesame\n", "open sesame\r\n", "open sesame\nsecond"] {
                std::fs::write(&path, text).unwrap();
                assert_eq!(first_line(&path).unwrap().as_slice(), b"open sesame");
            }
            for (text, why) in [("\nx", "is empty"), ("", "is empty")] {
                std::fs::write(&path, text).unwrap();
                assert!(first_line(&path).unwrap_err().text().contains(why));
            }
            std::fs::write(&path, [b'x'; PASSPHRASE_BYTES_MAX + 1]).unwrap();
            let error = first_line(&path).unwrap_err();
            assert!(error.text().contains("more than 1024 bytes"), "{error:?}");
            std::fs::write(&path, [b'x'; PASSPHRASE_BYTES_MAX]).unwrap();
            assert_eq!(first_line(&path).unwrap().len(), PASSPHRASE_BYTES_MAX);
        }
    }
}

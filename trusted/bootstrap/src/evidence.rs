// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The evidence by which a controller proves what it is.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use smt_device::tpm::Quote;

use crate::KEY_LEN;
use crate::manufacturer::{DeviceCertificate, whole};

/// SHA-256 of a program.
pub type Measurement = [u8; 32];

/// Measures a program's file. The device measures `/proc/self/exe`.
///
/// # Errors
/// The file cannot be read.
pub fn measure(program: &Path) -> io::Result<Measurement> {
    let mut digest = Sha256::new();
    io::copy(&mut io::BufReader::new(std::fs::File::open(program)?), &mut Writing(&mut digest))?;
    Ok(digest.finalize().into())
}

struct Writing<'a>(&'a mut Sha256);

impl io::Write for Writing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The facts that a controller shows a vendor.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Evidence {
    /// The manufacturer's certificate.
    pub certificate: DeviceCertificate,
    /// The measurement of the controller's program.
    pub measurement: Measurement,
    /// The key of this connection, made by that program.
    pub controller_key: [u8; KEY_LEN],
    /// The vendor whom the program takes configuration from.
    pub vendor_key: [u8; KEY_LEN],
    /// The key of the device's signatures over attested messages.
    pub message_key: [u8; KEY_LEN],
    /// The device's signature over the four fields above, its number, nonce and exporter: who
    /// learns the controller's key later cannot use it for another connection.
    pub device_signature: [[u8; 32]; 2],
    /// The controller's signature over nonce, exporter and the device's signature.
    pub proof: [[u8; 32]; 2],
    /// The statement of the TPM over nonce, controller key and exporter, and its signature.
    pub quote: Option<(Vec<u8>, [[u8; 32]; 2])>,
    /// The log behind the registers of that statement, as the host tells it, or nothing.
    pub event_log: Vec<u8>,
}

impl Evidence {
    /// The bytes that the device's key signs.
    pub(crate) fn measured(&self, nonce: &[u8; 32], exporter: &[u8; 32]) -> Vec<u8> {
        let device = self.certificate.device.to_be_bytes();
        [
            &b"SMT controller 1"[..],
            nonce,
            exporter,
            &device,
            &self.measurement,
            &self.controller_key,
            &self.vendor_key,
            &self.message_key,
        ]
        .concat()
    }

    pub(crate) fn quote(&self) -> Option<Quote> {
        let (statement, signature) = self.quote.as_ref()?;
        Some(Quote { statement: statement.clone(), signature: whole(signature) })
    }
}

/// The data that a TPM's quote is over.
pub(crate) fn quoted(
    nonce: &[u8; 32],
    controller_key: &[u8; KEY_LEN],
    exporter: &[u8; 32],
) -> [u8; 32] {
    Sha256::new()
        .chain_update(b"SMT quote data 1")
        .chain_update(nonce)
        .chain_update(controller_key)
        .chain_update(exporter)
        .finalize()
        .into()
}

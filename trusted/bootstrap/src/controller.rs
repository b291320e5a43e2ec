// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device's side.

use ed25519_dalek::{Signer, SigningKey};
use sha2::{Digest, Sha256};
use smt_device::tpm::{Quote, TpmError};

use crate::KEY_LEN;
use crate::configuration::Configuration;
use crate::error::BootstrapError;
use crate::evidence::{Evidence, Measurement, quoted};
use crate::manufacturer::{DeviceCertificate, halves};
use crate::message::{Binding, Message, open, signed};

/// The keys of a controller, which is one program on one device.
pub struct ControllerKeys {
    certificate: DeviceCertificate,
    measurement: Measurement,
    vendor_key: [u8; KEY_LEN],
    message_key: [u8; KEY_LEN],
    hardware: SigningKey,
    connection: SigningKey,
    event_log: Vec<u8>,
}

impl ControllerKeys {
    /// Joins what the device has with a new key of the connection (its seed: 32 random bytes).
    #[must_use]
    pub fn new(
        certificate: DeviceCertificate,
        measurement: Measurement,
        [hardware, connection]: [&[u8; 32]; 2],
        [vendor_key, message_key]: [[u8; KEY_LEN]; 2],
    ) -> Self {
        let [hardware, connection] = [hardware, connection].map(SigningKey::from_bytes);
        let event_log = Vec::new();
        Self { certificate, measurement, vendor_key, message_key, hardware, connection, event_log }
    }

    /// Adds the log of events that the host's firmware has kept beside the TPM.
    #[must_use]
    pub fn with_event_log(self, event_log: Vec<u8>) -> Self {
        Self { event_log, ..self }
    }

    fn evidence(&self, nonce: &[u8; 32], binding: &Binding) -> Evidence {
        let mut evidence = Evidence {
            certificate: self.certificate.clone(),
            measurement: self.measurement,
            controller_key: self.connection.verifying_key().to_bytes(),
            vendor_key: self.vendor_key,
            message_key: self.message_key,
            device_signature: [[0; 32]; 2],
            proof: [[0; 32]; 2],
            quote: None,
            event_log: self.event_log.clone(),
        };
        let measured = evidence.measured(nonce, &binding.exporter);
        let device_signature = self.hardware.sign(&measured).to_bytes();
        evidence.device_signature = halves(&device_signature);
        evidence.proof = self.sign(EVIDENCE, nonce, binding, &device_signature);
        evidence
    }

    fn sign(
        &self,
        purpose: &[u8; 16],
        nonce: &[u8; 32],
        binding: &Binding,
        about: &[u8],
    ) -> [[u8; 32]; 2] {
        halves(&self.connection.sign(&signed(purpose, nonce, &binding.exporter, about)).to_bytes())
    }
}

pub(crate) const EVIDENCE: &[u8; 16] = b"SMT evidence  v1";
pub(crate) const REPORT: &[u8; 16] = b"SMT report    v1";
pub(crate) const DONE: &[u8; 16] = b"SMT done      v1";

/// The device's side of one connection: messages in, messages out.
pub struct Controller {
    keys: ControllerKeys,
    binding: Binding,
    nonce: [u8; 32],
    image: Vec<u8>,
    step: Step,
}

enum Step {
    Nonce,
    Image,
    Key,
    Done,
}

/// The effect of a message of the vendor.
#[derive(Debug)]
pub enum Reaction {
    /// A message for the vendor.
    Reply(Message),
    /// A configuration to store. [`Message::Done`] goes to the vendor when it is stored.
    Store(Configuration, Message),
}

impl Controller {
    /// Begins with a connection whose other end has proved that it is the vendor.
    ///
    /// # Errors
    /// [`BootstrapError::OtherVendor`] if it is another one.
    pub fn begin(keys: ControllerKeys, binding: Binding) -> Result<Self, BootstrapError> {
        if binding.peer != keys.vendor_key {
            return Err(BootstrapError::OtherVendor);
        }
        Ok(Self { keys, binding, nonce: [0; 32], image: Vec::new(), step: Step::Nonce })
    }

    /// Takes the vendor's next message. `quote` has the TPM quote 32 bytes, if there is one.
    ///
    /// # Errors
    /// [`BootstrapError::Malformed`], also for a message out of turn; [`BootstrapError::Key`],
    /// [`BootstrapError::OtherDevice`], [`BootstrapError::Tpm`].
    pub fn take(
        &mut self,
        message: &[u8],
        quote: impl FnOnce(&[u8; 32]) -> Result<Option<Quote>, TpmError>,
    ) -> Result<Reaction, BootstrapError> {
        let message = Message::decode(message, "the controller")?;
        match (&self.step, message) {
            (Step::Nonce, Message::Nonce(nonce)) => {
                (self.nonce, self.step) = (nonce, Step::Image);
                let mut evidence = self.keys.evidence(&nonce, &self.binding);
                let data = quoted(&nonce, &evidence.controller_key, &self.binding.exporter);
                evidence.quote = quote(&data)?.map(|it| (it.statement, halves(&it.signature)));
                Ok(Reaction::Reply(Message::Evidence(Box::new(evidence))))
            }
            (Step::Image, Message::Image(image)) => {
                let digest: [u8; 32] = Sha256::digest(&image).into();
                (self.image, self.step) = (image, Step::Key);
                let signature = self.keys.sign(REPORT, &self.nonce, &self.binding, &digest);
                Ok(Reaction::Reply(Message::Report(digest, signature)))
            }
            (Step::Key, Message::Key(key)) => {
                self.step = Step::Done;
                let configuration = open(&self.image, &key.0)?;
                let (device, configured) = (self.keys.certificate.device, configuration.device);
                if device != configured {
                    return Err(BootstrapError::OtherDevice { device, configured });
                }
                let digest = Sha256::digest(&self.image);
                let signature = self.keys.sign(DONE, &self.nonce, &self.binding, &digest);
                Ok(Reaction::Store(configuration, Message::Done(signature)))
            }
            _ => Err(BootstrapError::Malformed("the controller")),
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device's side.

use ed25519_dalek::{Signer, SigningKey};
use smt_device::tpm::derivation::hmac;
use smt_device::tpm::{Activated, Credential, TpmError};

use super::claim::{Claim, ClaimDigest, Place};
use super::message::CertificationMessage;
use crate::KEY_LEN;
use crate::error::BootstrapError;
use crate::manufacturer::{DeviceCertificate, halves, verify_quoting_key};
use crate::message::Binding;

const STEP: &str = "the device";

/// The things that a device claims to be, and its key.
pub struct Application {
    claim: Claim,
    hardware: SigningKey,
}

impl Application {
    /// Joins a device's number and the seed of its own key with what its TPM says: the public area
    /// of the key of quotes, and the certificate of the endorsement key.
    #[must_use]
    pub fn new(
        device: u32,
        hardware: &[u8; 32],
        quoting_key: Vec<u8>,
        endorsement: Vec<u8>,
    ) -> Self {
        let hardware = SigningKey::from_bytes(hardware);
        let hardware_key = hardware.verifying_key().to_bytes();
        let signature = [[0; 32]; 2];
        let claim = Claim { device, hardware_key, quoting_key, endorsement, signature };
        Self { claim, hardware }
    }
}

/// The device's side of one connection: messages in, messages out.
pub struct Applicant {
    application: Application,
    place: Place,
    step: Step,
}

enum Step {
    Nonce,
    Challenge(ClaimDigest),
    Certificate,
    Done,
}

/// The effect of a message of the manufacturer.
#[derive(Debug)]
pub enum ApplicantReaction {
    /// A message for the manufacturer.
    Reply(CertificationMessage),
    /// A certificate to store. The message goes to the manufacturer when it is stored.
    Store(DeviceCertificate, CertificationMessage),
}

impl Applicant {
    /// Begins with a connection whose other end has proved that it is this manufacturer. `own` is
    /// the key of the device's end.
    ///
    /// # Errors
    /// [`BootstrapError::OtherManufacturer`] if it is another one.
    pub fn begin(
        application: Application,
        binding: Binding,
        own: [u8; KEY_LEN],
        manufacturer: [u8; KEY_LEN],
    ) -> Result<Self, BootstrapError> {
        if binding.peer != manufacturer {
            return Err(BootstrapError::OtherManufacturer);
        }
        let Binding { exporter, .. } = binding;
        let place = Place { nonce: [0; 32], exporter, applicant: own, manufacturer };
        Ok(Self { application, place, step: Step::Nonce })
    }

    /// Takes the manufacturer's next message. `activate` has the TPM open a credential and quote
    /// 32 bytes.
    ///
    /// # Errors
    /// [`BootstrapError::Malformed`], also for a message out of turn; [`BootstrapError::Tpm`] if
    /// the credential is for another TPM; [`BootstrapError::Certificate`] for one of other keys.
    pub fn take(
        &mut self,
        message: &[u8],
        activate: impl FnOnce(&Credential, &[u8; 32]) -> Result<Activated, TpmError>,
    ) -> Result<ApplicantReaction, BootstrapError> {
        let message = CertificationMessage::decode(message, STEP)?;
        match (&self.step, message) {
            (Step::Nonce, CertificationMessage::Nonce(nonce)) => {
                self.place.nonce = nonce;
                let Application { claim, hardware } = &self.application;
                let digest = claim.digest(&self.place);
                let signature = halves(&hardware.sign(&digest.signed()).to_bytes());
                self.step = Step::Challenge(digest);
                let claim = Box::new(Claim { signature, ..claim.clone() });
                Ok(ApplicantReaction::Reply(CertificationMessage::Claim(claim)))
            }
            (Step::Challenge(digest), CertificationMessage::Challenge { blob, seed }) => {
                let Activated { secret, quote } =
                    activate(&Credential { blob, seed }, &digest.quoted())?;
                let activated = hmac(&secret, &[&digest.activated()]);
                self.step = Step::Certificate;
                let (statement, signature) = (quote.statement, halves(&quote.signature));
                let answer = CertificationMessage::Answer { activated, statement, signature };
                Ok(ApplicantReaction::Reply(answer))
            }
            (Step::Certificate, CertificationMessage::Certificate(certificate)) => {
                self.step = Step::Done;
                self.judge(&certificate)?;
                Ok(ApplicantReaction::Store(certificate, CertificationMessage::Stored))
            }
            _ => Err(BootstrapError::Malformed(STEP)),
        }
    }

    /// Whether a certificate says what was claimed.
    fn judge(&self, certificate: &DeviceCertificate) -> Result<(), BootstrapError> {
        certificate.verify(&self.place.manufacturer)?;
        let Claim { device, hardware_key, quoting_key, .. } = &self.application.claim;
        let point = halves(&verify_quoting_key(quoting_key)?);
        let is_ours = certificate.device == *device
            && certificate.hardware_key == *hardware_key
            && certificate.quoting_key == Some(point);
        is_ours.then_some(()).ok_or(BootstrapError::Certificate)
    }
}

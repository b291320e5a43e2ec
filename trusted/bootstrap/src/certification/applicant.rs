// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device's side.

use ed25519_dalek::{Signer, SigningKey};
use smt_device::tpm::derivation::hmac;
use smt_device::tpm::{Activated, Credential, TpmError, judge_quoting_key};
use zeroize::Zeroizing;

use super::claim::{Claim, ClaimDigest, Place};
use super::message::CertificationMessage;
use crate::KEY_LEN;
use crate::error::BootstrapError;
use crate::manufacturer::{DeviceCertificate, halves};
use crate::message::Binding;

const STEP: &str = "the device";

/// The things that a device claims to be, and its key.
pub struct Application {
    /// The device's number.
    pub device: u32,
    /// The seed of the device's own key.
    pub hardware_seed: Zeroizing<[u8; 32]>,
    /// The public area of the key of its TPM's quotes (TPMT_PUBLIC).
    pub quoting_key: Vec<u8>,
    /// The certificate of its TPM's endorsement key (X.509).
    pub endorsement_certificate: Vec<u8>,
}

/// The keys of a connection's ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ApplicantKeys {
    /// The key of the device's end.
    pub own: [u8; KEY_LEN],
    /// The manufacturer that the device waits for.
    pub manufacturer: [u8; KEY_LEN],
}

/// The device's side of one connection: messages in, messages out.
pub struct Applicant {
    claim: Claim,
    hardware: SigningKey,
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
    /// Begins with a connection whose other end has proved that it is this manufacturer.
    ///
    /// # Errors
    /// [`BootstrapError::OtherManufacturer`] if it is another one.
    pub fn begin(
        application: Application,
        binding: Binding,
        keys: ApplicantKeys,
    ) -> Result<Self, BootstrapError> {
        let ApplicantKeys { own, manufacturer } = keys;
        if binding.peer != manufacturer {
            return Err(BootstrapError::OtherManufacturer);
        }
        let Binding { exporter, .. } = binding;
        let place = Place { nonce: [0; 32], exporter, applicant: own, manufacturer };
        let Application { device, hardware_seed, quoting_key, endorsement_certificate } =
            application;
        let hardware = SigningKey::from_bytes(&hardware_seed);
        let hardware_key = hardware.verifying_key().to_bytes();
        let signature = [[0; 32]; 2];
        let claim = Claim { device, hardware_key, quoting_key, endorsement_certificate, signature };
        Ok(Self { claim, hardware, place, step: Step::Nonce })
    }

    /// Takes the manufacturer's next message. `activate` has the TPM open a credential and quote
    /// 32 bytes.
    ///
    /// # Errors
    /// [`BootstrapError::Malformed`], also for a message out of turn; [`BootstrapError::Tpm`] if
    /// the credential is for another TPM; [`BootstrapError::OtherCertificate`].
    pub fn take(
        &mut self,
        message: &[u8],
        activate: impl FnOnce(&Credential, &[u8; 32]) -> Result<Activated, TpmError>,
    ) -> Result<ApplicantReaction, BootstrapError> {
        let message = CertificationMessage::decode(message, STEP)?;
        match (&self.step, message) {
            (Step::Nonce, CertificationMessage::Nonce(nonce)) => {
                self.place.nonce = nonce;
                let digest = self.claim.digest(&self.place);
                let signature = halves(&self.hardware.sign(&digest.signed()).to_bytes());
                self.step = Step::Challenge(digest);
                let claim = Box::new(Claim { signature, ..self.claim.clone() });
                Ok(ApplicantReaction::Reply(CertificationMessage::Claim(claim)))
            }
            (Step::Challenge(digest), CertificationMessage::Challenge { blob, seed }) => {
                let credential = Credential { blob, seed };
                if !credential.is_bounded() {
                    return Err(BootstrapError::Malformed(STEP));
                }
                let Activated { secret, quote } = activate(&credential, &digest.quoted())?;
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
        let is_signed = certificate.verify(&self.place.manufacturer).is_ok();
        let Claim { device, hardware_key, quoting_key, .. } = &self.claim;
        let point = halves(&judge_quoting_key(quoting_key)?);
        let is_ours = is_signed
            && certificate.device == *device
            && certificate.hardware_key == *hardware_key
            && certificate.quoting_key == Some(point);
        is_ours.then_some(()).ok_or(BootstrapError::OtherCertificate)
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The manufacturer's side.

use rustls::pki_types::UnixTime;
use smt_device::tpm::derivation::hmac;
use smt_device::tpm::{Credential, Quote, Quoted, judge_quoting_key, name_of};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::claim::{Claim, ClaimDigest, Place};
use super::message::CertificationMessage;
use crate::authorities::Authorities;
use crate::credential::make_credential;
use crate::endorsement::EndorsementKey;
use crate::error::BootstrapError;
use crate::manufacturer::{DeviceCertificate, Manufacturer, verify, whole};
use crate::message::Binding;

const STEP: &str = "the manufacturer";

/// The device that a manufacturer means to certify.
#[derive(Clone, Debug)]
pub struct Certification {
    /// The device's number.
    pub device: u32,
    /// The authorities of TPMs' vendors.
    pub authorities: Authorities,
    /// SHA-256 of the endorsement key of the one TPM that is taken; without it, each one is that
    /// the authorities certified.
    pub endorsement_digest: Option<[u8; 32]>,
    /// The time by which certificates are judged.
    pub now: UnixTime,
}

/// Random bytes of a connection, from the caller.
#[derive(Clone)]
pub struct CertificationRandomness {
    /// The nonce that claim and quote must be over.
    pub nonce: [u8; 32],
    /// The secret of the credential, which the device has not seen before its TPM opens it.
    pub secret: Zeroizing<[u8; 32]>,
}

/// The manufacturer's side of one connection: messages in, messages out.
pub struct Certifier<'a> {
    manufacturer: &'a Manufacturer,
    certification: Certification,
    place: Place,
    /// The credential's secret.
    secret: Zeroizing<[u8; 32]>,
    step: Step,
}

/// A device that has been certified.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Certified {
    /// The certificate.
    pub certificate: DeviceCertificate,
    /// SHA-256 of its TPM's endorsement key.
    pub endorsement_digest: [u8; 32],
    /// The facts of its TPM's quote.
    pub quoted: Quoted,
}

/// A claim that only its TPM has yet to prove.
struct Pending {
    claim: Box<Claim>,
    digest: ClaimDigest,
    endorsement_digest: [u8; 32],
    point: [u8; 64],
}

enum Step {
    Claim,
    Answer(Pending),
    Stored(Box<Certified>),
    End(Box<Certified>),
    Refused,
}

impl<'a> Certifier<'a> {
    /// Begins on a connection, with the message for the device.
    #[must_use]
    pub fn begin(
        manufacturer: &'a Manufacturer,
        certification: Certification,
        binding: Binding,
        random: CertificationRandomness,
    ) -> (Self, CertificationMessage) {
        let Binding { peer, exporter } = binding;
        let CertificationRandomness { nonce, secret } = random;
        let key = manufacturer.public_key();
        let place = Place { nonce, exporter, applicant: peer, manufacturer: key };
        let step = Step::Claim;
        let hello = CertificationMessage::Nonce(nonce);
        (Self { manufacturer, certification, place, secret, step }, hello)
    }

    /// Takes the device's next message, and returns what to send; nothing when all is done.
    ///
    /// # Errors
    /// Any [`BootstrapError`] of claims and answers. Nothing may be sent then.
    pub fn take(&mut self, message: &[u8]) -> Result<Option<CertificationMessage>, BootstrapError> {
        let message = CertificationMessage::decode(message, STEP)?;
        match (std::mem::replace(&mut self.step, Step::Refused), message) {
            (Step::Claim, CertificationMessage::Claim(claim)) => {
                let (pending, key) = self.judge(claim)?;
                let name = name_of(&pending.claim.quoting_key);
                let Credential { blob, seed } = make_credential(&key, &name, &self.secret)?;
                self.step = Step::Answer(pending);
                Ok(Some(CertificationMessage::Challenge { blob, seed }))
            }
            (
                Step::Answer(pending),
                CertificationMessage::Answer { activated, statement, signature },
            ) => {
                let expected = hmac(&*self.secret, &[&pending.digest.activated()]);
                if !bool::from(expected.ct_eq(&activated)) {
                    return Err(BootstrapError::NotActivated);
                }
                let quote = Quote { statement, signature: whole(&signature) };
                let quoted = quote.verify(&pending.point, &pending.digest.quoted());
                let certified = self.certify(pending, quoted.ok_or(BootstrapError::Quote)?);
                let message = CertificationMessage::Certificate(certified.certificate.clone());
                self.step = Step::Stored(Box::new(certified));
                Ok(Some(message))
            }
            (Step::Stored(certified), CertificationMessage::Stored) => {
                self.step = Step::End(certified);
                Ok(None)
            }
            _ => Err(BootstrapError::Malformed(STEP)),
        }
    }

    /// The device that was certified, once it has its certificate.
    #[must_use]
    pub fn certified(self) -> Option<Certified> {
        match self.step {
            Step::End(certified) => Some(*certified),
            _ => None,
        }
    }

    /// Each line is a step that must not be left out.
    fn judge(&self, claim: Box<Claim>) -> Result<(Pending, EndorsementKey), BootstrapError> {
        let Certification { device, authorities, endorsement_digest: wanted, now } =
            &self.certification;
        if claim.device != *device {
            let (device, asked) = (claim.device, *device);
            return Err(BootstrapError::OtherClaim { device, asked });
        }
        let digest = claim.digest(&self.place);
        if !verify(&claim.hardware_key, &digest.signed(), &claim.signature) {
            return Err(BootstrapError::Claim);
        }
        let key = authorities.verify(&claim.endorsement_certificate, *now)?;
        if let Some(wanted) = wanted {
            key.is(wanted)?;
        }
        let point = judge_quoting_key(&claim.quoting_key)?;
        let pending = Pending { claim, digest, endorsement_digest: key.digest(), point };
        Ok((pending, key))
    }

    fn certify(&self, pending: Pending, quoted: Quoted) -> Certified {
        let Pending { claim, endorsement_digest, point, .. } = pending;
        let certificate = self.manufacturer.certify(claim.device, claim.hardware_key, Some(point));
        Certified { certificate, endorsement_digest, quoted }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All that a certification needs. A test changes one thing of it.

use smt_bootstrap::{
    Applicant, ApplicantKeys, ApplicantReaction, Application, Binding, BootstrapError,
    Certification, CertificationMessage, CertificationRandomness, Certified, Certifier,
    Manufacturer, UnixTime, public_key as public,
};
use smt_device::tpm::{Activated, Credential, TpmError};
use zeroize::Zeroizing;

use crate::authority::{Authority, ECC};
use crate::quoting_key::area;

pub(crate) const DEVICE: u32 = 7;
/// Seeds of keys: manufacturer, device, the device's end of the connection.
const SEEDS: [[u8; 32]; 3] = [[1; 32], [2; 32], [3; 32]];

pub(crate) struct World {
    pub(crate) authority: Authority,
    pub(crate) certification: Certification,
    pub(crate) nonce: [u8; 32],
    pub(crate) secret: [u8; 32],
    /// The exporter as the manufacturer sees it; the device's is `[9; 32]`.
    pub(crate) exporter: [u8; 32],
    pub(crate) quoting_key: Vec<u8>,
    pub(crate) endorsement_certificate: Vec<u8>,
}

impl World {
    pub(crate) fn new() -> Self {
        let authority = Authority::new("vendor");
        let endorsement_certificate = authority.certify(ECC);
        let authorities = authority.alone();
        let now = UnixTime::now();
        Self {
            authority,
            certification: Certification {
                device: DEVICE,
                authorities,
                endorsement_digest: None,
                now,
            },
            nonce: [10; 32],
            secret: [11; 32],
            exporter: [9; 32],
            quoting_key: area(|_| ()),
            endorsement_certificate,
        }
    }

    pub(crate) fn manufacturer() -> Manufacturer {
        Manufacturer::new(&SEEDS[0])
    }

    pub(crate) fn hardware_key() -> [u8; 32] {
        public(&SEEDS[1])
    }

    /// The device's side, for a connection to the manufacturer of `peer`.
    pub(crate) fn applicant(&self, peer: [u8; 32]) -> Result<Applicant, BootstrapError> {
        let application = Application {
            device: DEVICE,
            hardware_seed: Zeroizing::new(SEEDS[1]),
            quoting_key: self.quoting_key.clone(),
            endorsement_certificate: self.endorsement_certificate.clone(),
        };
        let binding = Binding { peer, exporter: [9; 32] };
        let keys = ApplicantKeys { own: public(&SEEDS[2]), manufacturer: public(&SEEDS[0]) };
        Applicant::begin(application, binding, keys)
    }

    pub(crate) fn certifier<'a>(
        &self,
        manufacturer: &'a Manufacturer,
    ) -> (Certifier<'a>, CertificationMessage) {
        let binding = Binding { peer: public(&SEEDS[2]), exporter: self.exporter };
        let secret = Zeroizing::new(self.secret);
        let random = CertificationRandomness { nonce: self.nonce, secret };
        Certifier::begin(manufacturer, self.certification.clone(), binding, random)
    }

    /// A run in which `change` may change each message on its way.
    pub(crate) fn run(
        &self,
        mut change: impl FnMut(CertificationMessage) -> CertificationMessage,
        mut activate: impl FnMut(&Credential, &[u8; 32]) -> Result<Activated, TpmError>,
    ) -> Result<Certified, BootstrapError> {
        let manufacturer = Self::manufacturer();
        let mut applicant = self.applicant(manufacturer.public_key())?;
        let (mut certifier, hello) = self.certifier(&manufacturer);
        let mut next = Some(hello);
        let mut stored = None;
        while let Some(message) = next {
            let reply = match applicant.take(&change(message).encode(), &mut activate)? {
                ApplicantReaction::Reply(reply) => reply,
                ApplicantReaction::Store(certificate, reply) => {
                    stored = Some(certificate);
                    reply
                }
            };
            next = certifier.take(&change(reply).encode())?;
        }
        let certified = certifier.certified().unwrap();
        let is_stored = stored.as_ref() == Some(&certified.certificate);
        is_stored.then_some(certified).ok_or(BootstrapError::Certificate)
    }

    /// A run that must end before the TPM is asked.
    pub(crate) fn refused(
        &self,
        change: impl FnMut(CertificationMessage) -> CertificationMessage,
    ) -> BootstrapError {
        self.run(change, |_, _| panic!("the TPM was asked")).unwrap_err()
    }
}

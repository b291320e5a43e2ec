// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a manufacturer certifies a device that is not in its hands.
//!
//! 1. TLS 1.3 with raw public keys ([`crate::tls`]): the device takes its own manufacturer alone.
//! 2. The manufacturer sends a nonce. The device answers with a [`Claim`]: its number, its own key,
//!    the key of its TPM's quotes, and the certificate of the TPM's endorsement key, all signed by
//!    its own key with nonce and exporter.
//! 3. The manufacturer verifies the chain of that certificate, and that the key of quotes signs
//!    nothing but what its TPM says. It sends a secret that only a TPM with both keys gives out.
//! 4. The device answers with a MAC by that secret and with a quote, both over the claim.
//! 5. Only then the manufacturer certifies.
//!
//! The proof is that a process with the device's own key has a TPM at hand which has both other
//! keys. Where that process runs, and which program it is, is not proved: the vendor looks at the
//! program later, and root on a host with a genuine TPM can have a key of its own certified. A
//! manufacturer therefore asks for one TPM by its endorsement key's digest.

mod applicant;
mod certifier;
mod claim;
mod message;

pub use applicant::{Applicant, ApplicantKeys, ApplicantReaction, Application};
pub use certifier::{Certification, CertificationRandomness, Certified, Certifier};
pub use claim::Claim;
pub use message::CertificationMessage;

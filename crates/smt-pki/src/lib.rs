// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates for SMT: for a private authority of a cluster, for tests and examples.
//!
//! - [`CertificateAuthority`] signs leaves that a [`CertificatePlan`] describes.
//! - [`EphemeralCa`] is an authority that lives as long as the process, for a start without files.
//! - [`decrypt_key`] opens a private key that a passphrase encrypts.
//! - [`CertificateText`] is the content of a certificate, in words, [`RevocationListText`] that of
//!   a revocation list, and [`PublicKeyText`] that of a public key without a certificate.
//!
//! ```
//! use smt_handshake::{ClientTls, ServerTls};
//! use smt_pki::EphemeralCa;
//!
//! let authority = EphemeralCa::new()?;
//! let server = ServerTls::new(authority.server(&["localhost"])?).build()?;
//! let client = ClientTls::new(authority.trust()?).build()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Not here: whom an endpoint trusts and what it proves to be (`smt-handshake`).

#![forbid(unsafe_code)]

mod authority;
mod authority_key;
mod encrypted_key;
mod ephemeral_ca;
mod error;
pub mod limits;
mod list_text;
mod plan;
mod raw_key;
mod revocation_list;
mod serial;
mod text;

pub use authority::{CertificateAuthority, IssuedCertificate};
pub use encrypted_key::decrypt_key;
pub use ephemeral_ca::EphemeralCa;
pub use error::MakeCertificateError;
pub use list_text::{RevocationListText, RevokedText};
pub use plan::{CertificatePlan, DAYS_DEFAULT, KeyKind, Purpose, SubjectName, Validity};
pub use raw_key::RawKey;
pub use revocation_list::RevokedCertificates;
pub use serial::{BadSerial, CertificateSerial};
pub use text::{CertificateText, PublicKeyText};

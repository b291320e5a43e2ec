// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates for SMT: for a private authority of a cluster, for tests and examples.
//!
//! - [`CertificateAuthority`] signs leaves that a [`CertificatePlan`] describes.
//! - [`ThrowAway`] is an authority that lives as long as the process, for a start without files.
//! - [`CertificateText`] is what a certificate says, in words.
//!
//! ```
//! use smt_handshake::{ClientTls, ServerTls};
//! use smt_pki::ThrowAway;
//!
//! let authority = ThrowAway::new()?;
//! let server = ServerTls::new(authority.server(&["localhost"])?).build()?;
//! let client = ClientTls::new(authority.trust()?).build()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Not here: whom an endpoint trusts and what it proves to be (`smt-handshake`).

#![forbid(unsafe_code)]

mod authority;
mod ephemeral_ca;
pub mod limits;
mod text;

pub use authority::{
    CertificateAuthority, CertificatePlan, DAYS_DEFAULT, IssuedCertificate, KeyKind,
    MakeCertificateError, Purpose, SubjectName, Validity,
};
pub use ephemeral_ca::ThrowAway;
pub use text::CertificateText;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a device in a cloud that nobody trusts gets its groups' secrets (paper §4.3, appendix B).
//!
//! | role | has | does |
//! |---|---|---|
//! | [`Manufacturer`] | a key that all vendors know | certifies each device's own key, and the key of its TPM's quotes |
//! | [`Controller`] | the device's key, and the vendor's public key | measures its own program, makes a key for the connection, and has the device's key sign both |
//! | [`Vendor`] | a key that controllers know, a list of programs | verifies all of it, then sends configuration and secrets |
//!
//! A manufacturer certifies a device in its hands, or from afar ([`Certifier`], [`Applicant`]).
//!
//! The steps, each of which refuses what is wrong:
//!
//! 1. TLS 1.3 with raw public keys ([`tls`]): the controller takes no vendor but its own.
//! 2. The vendor sends a nonce. The controller answers with [`Evidence`]: the manufacturer's
//!    certificate; the device key's signature over measurement, controller key, nonce and TLS
//!    exporter; the controller key's signature over that one, nonce and exporter; and a TPM's quote
//!    over nonce, controller key and exporter.
//! 3. The vendor verifies all of them, that the connection's key is the certified one, and that
//!    this is the device that the configuration is for. It sends the configuration, encrypted under
//!    a key that it keeps.
//! 4. The controller reports what it has got, signed. Only then the vendor sends the key.
//! 5. The controller decrypts, stores and acknowledges, signed. If the acknowledgement is lost, all
//!    is done again: a device takes a secret that it has.
//!
//! **The limits.** The program measures itself, so a measurement is as good as the device's key:
//! root on the device's host, who can use that key, can state any. A quote over the platform's
//! registers proves nothing against root either, who extends them as it likes after the boot; it
//! proves that the TPM which the manufacturer saw is still there, and what the firmware measured
//! before root was there. The log behind the registers ([`EventLog`]) proves which digests that
//! were, and not that firmware measured all that it ran.
#![forbid(unsafe_code)]

mod accepted_events;
mod authorities;
mod certification;
mod configuration;
mod controller;
mod credential;
mod endorsement;
mod error;
mod event_kind;
mod event_log;
mod evidence;
mod manufacturer;
mod message;
pub mod tls;
mod vendor;

pub use accepted_events::{AcceptError, AcceptSyntaxError, AcceptedEvents};
pub use authorities::{Authorities, AuthorityError};
pub use certification::{
    Applicant, ApplicantKeys, ApplicantReaction, Application, Certification, CertificationMessage,
    CertificationRandomness, Certified, Certifier, Claim,
};
pub use configuration::Configuration;
pub use controller::{Controller, ControllerKeys, Reaction};
pub use endorsement::{EndorsementError, EndorsementKey, endorsement_kind};
pub use error::BootstrapError;
pub use event_kind::{EventKind, EventKindError};
pub use event_log::{EVENT_LOG_LEN_MAX, Event, EventLog, EventLogError, REGISTERS};
pub use evidence::{Evidence, Measurement, measure};
pub use manufacturer::{DeviceCertificate, Manufacturer, public_key};
pub use message::{Binding, ImageKey, MESSAGE_LEN_MAX, Message};
pub use rustls::pki_types::UnixTime;
pub use vendor::{Policy, Provisioned, Randomness, Vendor};

/// Bytes of a public key (Ed25519).
pub const KEY_LEN: usize = 32;

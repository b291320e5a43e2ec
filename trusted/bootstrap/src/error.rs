// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why bootstrapping stops.

use std::io;

use smt_device::tpm::{QuotingKeyFault, TpmError};

use crate::accepted_events::AcceptError;
use crate::endorsement::EndorsementError;
use crate::event_log::EventLogError;

/// Why a step was refused. Each text begins with whose fault it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// The bytes are no message of this step.
    #[error("the peer: its message is none of step {0}")]
    Malformed(&'static str),
    /// The certificate is not this manufacturer's.
    #[error("the device: its certificate is not signed by this manufacturer")]
    Certificate,
    /// The manufacturer has revoked the device.
    #[error("the device: number {0} is revoked")]
    Revoked(u32),
    /// The device's key has not signed the measurement.
    #[error("the device: its own key has not signed this measurement, key and connection")]
    Measurement,
    /// The program is on no list.
    #[error("the device: it runs a program that is not published: {0}")]
    Program(String),
    /// The controller takes another vendor's configuration.
    #[error("the device: its program has another vendor's key")]
    OtherVendor,
    /// The connection is not the certified controller's.
    #[error("the network: the connection ends at another key than the certified one")]
    OtherPeer,
    /// The signature is not over this nonce and connection.
    #[error("the device or the network: its proof is not of this nonce and connection")]
    Stale,
    /// The quote is missing or wrong.
    #[error("the device's TPM: its quote is missing, or not over this nonce and connection")]
    Quote,
    /// The report is not of what was sent.
    #[error("the device: it reports another configuration than it was sent")]
    Report,
    /// The configuration does not decrypt.
    #[error("the vendor: the key does not open the configuration")]
    Key,
    /// The configuration is for another device.
    #[error("the vendor: the configuration is for device {configured}, and this is {device}")]
    OtherDevice {
        /// The number in the certificate.
        device: u32,
        /// The number in the configuration.
        configured: u32,
    },
    /// The platform booted something else.
    #[error("the device's host: its registers have another digest than yours: {0}")]
    Registers(String),
    /// The log behind the platform's registers is none, or not that of these registers.
    #[error("the device's host: its log of events is not the one behind its registers")]
    EventLog(#[from] EventLogError),
    /// The log behind the platform's registers has an event that is not accepted, or lacks one.
    #[error("the device's host: it booted something else than what you accept")]
    Event(#[from] AcceptError),
    /// The device's TPM does not quote, or does not open a credential.
    #[error("the device's TPM gives no quote, or is not the one of its certificate")]
    Tpm(#[from] TpmError),
    /// The other end is another manufacturer than the one that the device waits for.
    #[error("the manufacturer: it is not the one that the device waits for")]
    OtherManufacturer,
    /// The manufacturer has certified something else than the claim, or has not signed it.
    #[error("the manufacturer: its certificate is of another number or key, or not signed by it")]
    OtherCertificate,
    /// The device has another number than the manufacturer means to certify.
    #[error("the device: its number is {device}, and you asked for {asked}")]
    OtherClaim {
        /// The number in the claim.
        device: u32,
        /// The number that was asked for.
        asked: u32,
    },
    /// The device's key has not signed the claim.
    #[error("the device or the network: its own key has not signed this claim and connection")]
    Claim,
    /// No chain of certificates says that the TPM is genuine, or a list of withdrawn ones is bad.
    #[error("{}", .0.fault())]
    Endorsement(#[from] EndorsementError),
    /// The key of quotes signs more than what its TPM says.
    #[error("the device's TPM: its quotes would prove nothing")]
    QuotingKey(#[from] QuotingKeyFault),
    /// The endorsement key has the form of a key, and nothing can be encrypted for it.
    #[error("the device's TPM: its endorsement key is none, and no credential can be made for it")]
    EndorsementKey,
    /// There is no randomness, or no memory.
    #[error("the operating system: it gives no randomness, or no memory for cryptography")]
    Cryptography,
    /// The device has not shown that both keys are in one TPM.
    #[error("the device's TPM: it has not opened the credential: another TPM has the other key")]
    NotActivated,
    /// A peer takes too long.
    #[error("the peer: it did not finish the handshake within {0} seconds")]
    Slow(u64),
    /// TLS failed, for example since the peer is not the vendor or manufacturer of this device.
    #[error("the peer: its TLS is not that of the one that is waited for, or the network broke it")]
    Tls(#[from] rustls::Error),
    /// The connection broke.
    #[error("the peer or the network: the connection ended before all was done")]
    Connection(#[from] io::Error),
}

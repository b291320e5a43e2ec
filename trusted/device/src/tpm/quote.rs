// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Quotes: a TPM's signature over what its host has measured, and over a value of ours.

use p256::ecdsa::signature::Verifier;
use p256::ecdsa::{Signature, VerifyingKey};

use super::buffer::{Fields, sized, take, u16, u32};
use super::commands::{CREATE_PRIMARY, Code, ENDORSEMENT, Primary};
use super::quoting_template::{judge, template};
use super::storage_key::{POINT_LEN, sec1};
use super::{TpmError, Transport};

const QUOTE: Code = Code(0x158, "TPM2_Quote");

/// The first bytes of all that a TPM says of itself; a restricted key signs nothing else with them.
const TPM_GENERATED: u32 = 0xff54_4347;
const ATTEST_QUOTE: u16 = 0x8018;
/// SHA-256, and the platform's registers 0 to 7.
const SELECTION: [u8; 10] = [0, 0, 0, 1, 0, 0x0b, 3, 0xff, 0, 0];
/// Bytes of the clock, before resets and restarts.
const CLOCK_LEN: usize = 8;
/// Bytes of safe and firmware version, after them.
const VERSION_LEN: usize = 9;

/// A quote as it travels.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Quote {
    /// The TPM's statement (TPMS_ATTEST).
    pub statement: Vec<u8>,
    /// Its signature: r and s of ECDSA with P-256 and SHA-256.
    pub signature: [u8; 64],
}

/// The facts of a quote that has been verified.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Quoted {
    /// SHA-256 over the platform's registers 0 to 7: firmware, boot loader and their settings, as
    /// the platform has measured them.
    pub registers: [u8; 32],
    /// How often the TPM was reset, which each boot of the platform does once.
    pub resets: u32,
    /// How often it was restarted without a reset, which waking from sleep does.
    pub restarts: u32,
}

/// The key that signs quotes: the TPM makes the same one each time.
#[derive(Debug)]
pub struct QuotingKey {
    pub(super) handle: u32,
    public: Vec<u8>,
    point: [u8; POINT_LEN],
}

impl QuotingKey {
    /// Has the TPM make the key, which takes a place in its memory.
    ///
    /// # Errors
    /// Those of the TPM and of the way to it.
    pub fn create(tpm: &mut Transport) -> Result<Self, TpmError> {
        let template = template(&[0; POINT_LEN]);
        let Primary { handle, public } = tpm.create_primary(ENDORSEMENT, &template)?;
        let point = judge(&public).map_err(|_| TpmError::Forged(CREATE_PRIMARY.1))?;
        Ok(Self { handle, public, point })
    }

    /// The public point.
    #[must_use]
    pub fn point(&self) -> [u8; POINT_LEN] {
        self.point
    }

    /// The public area (TPMT_PUBLIC), whose digest is in the key's name.
    #[must_use]
    pub fn public_area(&self) -> &[u8] {
        &self.public
    }

    /// A quote over `data`.
    ///
    /// # Errors
    /// Those of the TPM and of the way to it.
    pub fn quote(&self, tpm: &mut Transport, data: &[u8; 32]) -> Result<Quote, TpmError> {
        // The key's own scheme.
        let parameters = Fields::default().sized(data).u16(0x0010).bytes(&SELECTION);
        let response = tpm.with_empty_password(QUOTE, self.handle, &parameters)?;
        quote_of(response.parameters(QUOTE)?).ok_or(TpmError::Forged(QUOTE.1))
    }

    /// Lets go of the key.
    ///
    /// # Errors
    /// Those of the TPM and of the way to it.
    pub fn let_go(self, tpm: &mut Transport) -> Result<(), TpmError> {
        tpm.flush(self.handle)
    }
}

impl Quote {
    /// The statement, if the key of `point` has signed this quote over `data`.
    #[must_use]
    pub fn verify(&self, point: &[u8; POINT_LEN], data: &[u8; 32]) -> Option<Quoted> {
        let key = VerifyingKey::from_sec1_bytes(&sec1(point)).ok()?;
        let signature = Signature::from_slice(&self.signature).ok()?;
        key.verify(&self.statement, &signature).ok()?;
        let mut rest = &self.statement[..];
        if u32(&mut rest)? != TPM_GENERATED || u16(&mut rest)? != ATTEST_QUOTE {
            return None;
        }
        let _signer = sized(&mut rest)?;
        let is_over_data = sized(&mut rest)? == data;
        let _clock = take::<CLOCK_LEN>(&mut rest)?;
        let (resets, restarts) = (u32(&mut rest)?, u32(&mut rest)?);
        let _version = take::<VERSION_LEN>(&mut rest)?;
        let is_selection = take(&mut rest)? == SELECTION;
        let registers = sized(&mut rest)?.try_into().ok()?;
        let is_ours = is_over_data && is_selection && rest.is_empty();
        is_ours.then_some(Quoted { registers, resets, restarts })
    }
}

/// The parameters of a response to TPM2_Quote: statement, ECDSA, SHA-256, r, s.
fn quote_of(mut rest: &[u8]) -> Option<Quote> {
    let statement = sized(&mut rest)?.to_vec();
    if take(&mut rest)? != [0, 0x18, 0, 0x0b] {
        return None;
    }
    let mut signature = [0; 64];
    for half in signature.chunks_exact_mut(32) {
        // A TPM may leave zeros at the beginning out.
        let number = sized(&mut rest)?;
        let place = 32_usize.checked_sub(number.len())?;
        half[place..].copy_from_slice(number);
    }
    Some(Quote { statement, signature })
}

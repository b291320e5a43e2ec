// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The vendor's side.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use smt_device::tpm::Quoted;
use zeroize::Zeroizing;

use crate::KEY_LEN;
use crate::accepted_events::AcceptedEvents;
use crate::configuration::Configuration;
use crate::controller::{DONE, EVIDENCE, REPORT};
use crate::error::BootstrapError;
use crate::event_log::EventLog;
use crate::evidence::{Evidence, Measurement, quoted};
use crate::manufacturer::{verify, whole};
use crate::message::{Binding, ImageKey, Message, seal, signed};

/// The devices that a vendor takes.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The manufacturer's key.
    pub manufacturer: [u8; KEY_LEN],
    /// The published programs of controllers.
    pub programs: Vec<Measurement>,
    /// Devices that the manufacturer has revoked.
    pub revoked: Vec<u32>,
    /// Whether a device must have a TPM.
    pub needs_quote: bool,
    /// The digest of the platform's registers that a device's quote must have, if the vendor has
    /// one.
    pub registers: Option<[u8; 32]>,
    /// The events that the log behind those registers may have, if the vendor looks at it.
    pub events: Option<AcceptedEvents>,
    /// The vendor's own key, which the controller's program must have.
    pub vendor_key: [u8; KEY_LEN],
}

/// Random bytes of a connection, from the caller.
#[derive(Clone)]
pub struct Randomness {
    /// The nonce that evidence must be over.
    pub nonce: [u8; 32],
    /// The key of the configuration.
    pub key: Zeroizing<[u8; 32]>,
    /// The nonce of its encryption.
    pub image_nonce: [u8; 24],
}

/// The vendor's side of one connection: messages in, messages out.
pub struct Vendor {
    policy: Policy,
    binding: Binding,
    random: Randomness,
    image: Vec<u8>,
    /// The device that the configuration is for.
    device: u32,
    step: Step,
    provisioned: Provisioned,
}

/// The facts that a vendor has verified of a device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Provisioned {
    /// The key by which the device signs attested messages.
    pub message_key: [u8; KEY_LEN],
    /// The quote of its TPM, if it has one.
    pub quoted: Option<Quoted>,
}

enum Step {
    Evidence,
    Report,
    Done,
    End,
}

impl Vendor {
    /// Begins on a connection, with the message for the controller. The configuration leaves the
    /// vendor encrypted, and its key only when the controller has proved itself and reported.
    #[must_use]
    pub fn begin(
        policy: Policy,
        binding: Binding,
        random: Randomness,
        configuration: &Configuration,
    ) -> (Self, Message) {
        let image = seal(configuration, &random.key, random.image_nonce);
        let hello = Message::Nonce(random.nonce);
        let provisioned = Provisioned { message_key: [0; KEY_LEN], quoted: None };
        let (device, step) = (configuration.device, Step::Evidence);
        (Self { policy, binding, random, image, device, step, provisioned }, hello)
    }

    /// Takes the controller's next message, and returns what to send; nothing when all is done.
    ///
    /// # Errors
    /// Any [`BootstrapError`] of evidence and reports. Nothing may be sent then.
    pub fn take(&mut self, message: &[u8]) -> Result<Option<Message>, BootstrapError> {
        let message = Message::decode(message, "the vendor")?;
        match (&self.step, message) {
            (Step::Evidence, Message::Evidence(evidence)) => {
                let quoted = self.judge(&evidence)?;
                self.provisioned = Provisioned { message_key: evidence.message_key, quoted };
                self.step = Step::Report;
                Ok(Some(Message::Image(self.image.clone())))
            }
            (Step::Report, Message::Report(digest, signature)) => {
                let sent: [u8; 32] = Sha256::digest(&self.image).into();
                if digest != sent || !self.has_signed(REPORT, &digest, &signature) {
                    return Err(BootstrapError::Report);
                }
                self.step = Step::Done;
                Ok(Some(Message::Key(ImageKey(*self.random.key))))
            }
            (Step::Done, Message::Done(signature)) => {
                let sent = Sha256::digest(&self.image);
                if !self.has_signed(DONE, &sent, &signature) {
                    return Err(BootstrapError::Report);
                }
                self.step = Step::End;
                Ok(None)
            }
            _ => Err(BootstrapError::Malformed("the vendor")),
        }
    }

    /// The facts that were verified of the device, once all is done.
    #[must_use]
    pub fn provisioned(&self) -> Option<Provisioned> {
        matches!(self.step, Step::End).then_some(self.provisioned)
    }

    /// Each line is a step that must not be left out.
    fn judge(&self, evidence: &Evidence) -> Result<Option<Quoted>, BootstrapError> {
        let Policy { manufacturer, programs, revoked, vendor_key, .. } = &self.policy;
        let Evidence { certificate, measurement, .. } = evidence;
        certificate.verify(manufacturer)?;
        let (device, configured) = (certificate.device, self.device);
        if revoked.contains(&device) {
            return Err(BootstrapError::Revoked(device));
        }
        // A device that is genuine, and another one than asked for, gets nothing either.
        if device != configured {
            return Err(BootstrapError::OtherDevice { device, configured });
        }
        if evidence.controller_key != self.binding.peer {
            return Err(BootstrapError::OtherPeer);
        }
        let about = whole(&evidence.device_signature);
        if !self.has_signed(EVIDENCE, &about, &evidence.proof) {
            return Err(BootstrapError::Stale);
        }
        let measured = evidence.measured(&self.random.nonce, &self.binding.exporter);
        if !verify(&certificate.hardware_key, &measured, &evidence.device_signature) {
            return Err(BootstrapError::Measurement);
        }
        if !programs.contains(measurement) {
            return Err(BootstrapError::Program(HEXLOWER.encode(measurement)));
        }
        if evidence.vendor_key != *vendor_key {
            return Err(BootstrapError::OtherVendor);
        }
        self.judge_quote(evidence)
    }

    fn judge_quote(&self, evidence: &Evidence) -> Result<Option<Quoted>, BootstrapError> {
        let Policy { needs_quote, registers, events, .. } = &self.policy;
        let Some(point) = &evidence.certificate.quoting_key else {
            let needs_none = !needs_quote && registers.is_none() && events.is_none();
            return needs_none.then_some(None).ok_or(BootstrapError::Quote);
        };
        // A device that has a TPM shows it, also to a vendor that takes others.
        let Binding { peer, exporter } = &self.binding;
        let data = quoted(&self.random.nonce, peer, exporter);
        let quoted = evidence.quote().and_then(|quote| quote.verify(&whole(point), &data));
        let quoted = quoted.ok_or(BootstrapError::Quote)?;
        if registers.is_some_and(|registers| registers != quoted.registers) {
            return Err(BootstrapError::Registers(HEXLOWER.encode(&quoted.registers)));
        }
        if let Some(events) = events {
            let log = EventLog::parse(&evidence.event_log)?;
            log.leads_to(&quoted.registers)?;
            events.judge(&log)?;
        }
        Ok(Some(quoted))
    }

    fn has_signed(&self, purpose: &[u8; 16], about: &[u8], signature: &[[u8; 32]; 2]) -> bool {
        let Binding { peer, exporter } = &self.binding;
        verify(peer, &signed(purpose, &self.random.nonce, exporter, about), signature)
    }
}

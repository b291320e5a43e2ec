// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Claims, and answers of devices whose TPM opens nothing.

use smt_bootstrap::{
    ApplicantReaction, BootstrapError, CertificationMessage as Message, Claim, EndorsementError,
};
use smt_device::tpm::{Activated, Quote, QuotingKeyFault};
use zeroize::Zeroizing;

use crate::authority::{Authority, ECC, RSA};
use crate::quoting_key::area;
use crate::world::{DEVICE, World};

/// An answer of a device that has no TPM.
fn made_up() -> Activated {
    let quote = Quote { statement: vec![0; 100], signature: [0; 64] };
    Activated { secret: Zeroizing::new(vec![0; 32]), quote }
}

fn with_claim(change: impl Fn(&mut Claim)) -> impl FnMut(Message) -> Message {
    move |message| match message {
        Message::Claim(mut claim) => {
            change(&mut claim);
            Message::Claim(claim)
        }
        other => other,
    }
}

#[test]
fn a_claim_to_another_number_is_refused() {
    let mut world = World::new();
    world.certification.device = 8;
    let refused = world.refused(|it| it);
    assert!(matches!(refused, BootstrapError::OtherClaim { device: DEVICE, asked: 8 }));
}

#[test]
fn a_claim_that_the_devices_own_key_has_not_signed_is_refused() {
    let world = World::new();
    let other = world.authority.certify(RSA);
    let changes: [&dyn Fn(&mut Claim); 4] = [
        &|it| it.hardware_key = [4; 32],
        &|it| it.quoting_key = area(|_| ()).iter().map(|byte| byte ^ 1).collect(),
        &|it| it.endorsement_certificate = other.clone(),
        &|it| it.signature[0][0] ^= 1,
    ];
    for change in changes {
        let refused = world.refused(with_claim(change));
        assert!(matches!(refused, BootstrapError::Claim), "{refused:?}");
    }
}

#[test]
fn a_claim_of_an_earlier_or_another_connection_is_refused() {
    let mut world = World::new();
    let mut earlier = None;
    let ended = world.run(
        |message| {
            if let Message::Claim(claim) = &message {
                earlier = Some(claim.clone());
            }
            message
        },
        |_, _| Ok(made_up()),
    );
    assert!(matches!(ended, Err(BootstrapError::NotActivated)));
    let earlier = earlier.unwrap();
    world.nonce = [12; 32];
    let refused = world.refused(with_claim(|it| *it = (*earlier).clone()));
    assert!(matches!(refused, BootstrapError::Claim), "{refused:?}");
    let mut world = World::new();
    world.exporter = [13; 32];
    assert!(matches!(world.refused(|it| it), BootstrapError::Claim));
}

#[test]
fn a_claim_with_the_certificate_of_another_authority_is_refused() {
    let mut world = World::new();
    world.endorsement_certificate = Authority::new("vendor").certify(ECC);
    let refused = world.refused(|it| it);
    let is_chain = matches!(refused, BootstrapError::Endorsement(EndorsementError::Chain(_)));
    assert!(is_chain, "{refused:?}");
}

#[test]
fn a_genuine_tpm_that_was_not_asked_for_is_refused() {
    let mut world = World::new();
    world.certification.endorsement_digest = Some([5; 32]);
    let refused = world.refused(|it| it);
    let is_other = matches!(refused, BootstrapError::Endorsement(EndorsementError::Other(_)));
    assert!(is_other, "{refused:?}");
}

#[test]
fn a_claim_with_a_key_of_quotes_that_is_not_restricted_is_refused() {
    let mut world = World::new();
    world.quoting_key = area(|attributes| *attributes &= !(1 << 16));
    let refused = world.refused(|it| it);
    let is_fault = matches!(refused, BootstrapError::QuotingKey(QuotingKeyFault::NotRestricted));
    assert!(is_fault, "{refused:?}");
}

#[test]
fn a_device_that_did_not_open_the_credential_is_refused() {
    let refused = World::new().run(|it| it, |_, _| Ok(made_up()));
    assert!(matches!(refused, Err(BootstrapError::NotActivated)), "{refused:?}");
}

#[test]
fn a_device_takes_no_other_manufacturer() {
    let refused = World::new().applicant([6; 32]);
    assert!(matches!(refused, Err(BootstrapError::OtherManufacturer)));
}

#[test]
fn a_device_refuses_a_certificate_of_other_keys_or_another_signer() {
    let world = World::new();
    let (ours, theirs) = (World::manufacturer(), smt_bootstrap::Manufacturer::new(&[14; 32]));
    let point = std::array::from_fn(|place| 1 + place as u8 / 32);
    let hardware_key = World::hardware_key();
    let take = |certificate| {
        let mut applicant = world.applicant(ours.public_key()).unwrap();
        let challenge = Message::Challenge { blob: vec![], seed: vec![] };
        for message in [Message::Nonce([0; 32]), challenge] {
            applicant.take(&message.encode(), |_, _| Ok(made_up())).unwrap();
        }
        applicant.take(&Message::Certificate(certificate).encode(), |_, _| Ok(made_up()))
    };
    let stored = take(ours.certify(DEVICE, hardware_key, Some(point)));
    assert!(matches!(stored, Ok(ApplicantReaction::Store(..))));
    for other in [
        ours.certify(8, hardware_key, Some(point)),
        ours.certify(DEVICE, [4; 32], Some(point)),
        ours.certify(DEVICE, hardware_key, Some([1; 64])),
        ours.certify(DEVICE, hardware_key, None),
        theirs.certify(DEVICE, hardware_key, Some(point)),
    ] {
        assert!(matches!(take(other), Err(BootstrapError::OtherCertificate)));
    }
}

#[test]
fn a_credential_longer_than_any_of_a_tpm_is_refused_before_the_tpm_is_asked() {
    let world = World::new();
    let take = |blob_len: usize, seed_len: usize| {
        let mut applicant = world.applicant(World::manufacturer().public_key()).unwrap();
        applicant.take(&Message::Nonce([0; 32]).encode(), |_, _| Ok(made_up())).unwrap();
        let challenge = Message::Challenge { blob: vec![0; blob_len], seed: vec![0; seed_len] };
        let mut is_asked = false;
        let taken = applicant.take(&challenge.encode(), |_, _| {
            is_asked = true;
            Ok(made_up())
        });
        assert_eq!(taken.is_ok(), is_asked);
        taken
    };
    take(68, 256).unwrap();
    // The last ones would be good ones if their lengths were cut to two bytes.
    for (blob_len, seed_len) in [(69, 256), (68, 257), (65_536 + 68, 256), (68, 65_536 + 256)] {
        let taken = take(blob_len, seed_len);
        assert!(matches!(taken, Err(BootstrapError::Malformed(_))), "{taken:?}");
    }
}

#[test]
fn a_message_out_of_turn_is_refused() {
    let world = World::new();
    let manufacturer = World::manufacturer();
    let answer = Message::Answer { activated: [0; 32], statement: vec![], signature: [[0; 32]; 2] };
    let certificate = manufacturer.certify(DEVICE, World::hardware_key(), None);
    let messages = [answer, Message::Stored, Message::Certificate(certificate)];
    for bytes in messages.iter().map(Message::encode).chain([vec![0xff; 40], vec![]]) {
        let (mut certifier, _) = world.certifier(&manufacturer);
        let taken = certifier.take(&bytes);
        assert!(matches!(taken, Err(BootstrapError::Malformed(_))), "{taken:?}");
        let mut applicant = world.applicant(manufacturer.public_key()).unwrap();
        let taken = applicant.take(&bytes, |_, _| Ok(made_up()));
        assert!(matches!(taken, Err(BootstrapError::Malformed(_))), "{taken:?}");
    }
}

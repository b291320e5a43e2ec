// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Each step of bootstrapping, and what is wrong at it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use ed25519_dalek::{Signer, SigningKey};
use sha2::{Digest, Sha256};
use smt_bootstrap::{
    Binding, BootstrapError, Configuration, Controller, ControllerKeys, Evidence, ImageKey,
    Manufacturer, Message, Policy, Randomness, Reaction, Vendor, public_key as public,
};
use zeroize::Zeroizing;

const DEVICE: u32 = 7;
const PROGRAM: [u8; 32] = [5; 32];
const SECRET: [u8; 32] = [0xab; 32];
/// Seeds of keys: manufacturer, device, connection, vendor, signatures.
const SEEDS: [[u8; 32]; 5] = [[1; 32], [2; 32], [3; 32], [4; 32], [6; 32]];

/// All that a run needs. A test changes one thing of it.
struct World {
    manufacturer: Manufacturer,
    policy: Policy,
    /// The connection as the vendor sees it, and as the controller does.
    vendor_binding: Binding,
    controller_binding: Binding,
    configuration: Configuration,
    controller_vendor: [u8; 32],
    /// The seed of the device's key that the controller has.
    hardware: [u8; 32],
    nonce: [u8; 32],
    has_tpm: bool,
}

impl World {
    fn new() -> Self {
        let manufacturer = Manufacturer::new(&SEEDS[0]);
        let vendor_key = public(&SEEDS[3]);
        let exporter = [9; 32];
        let policy = Policy {
            manufacturer: manufacturer.public_key(),
            programs: vec![[0; 32], PROGRAM],
            revoked: vec![8],
            needs_quote: false,
            registers: None,
            events: None,
            vendor_key,
        };
        Self {
            manufacturer,
            policy,
            vendor_binding: Binding { peer: public(&SEEDS[2]), exporter },
            controller_binding: Binding { peer: vendor_key, exporter },
            configuration: Configuration { device: DEVICE, secrets: vec![(1, SECRET)] },
            controller_vendor: vendor_key,
            hardware: SEEDS[1],
            nonce: [10; 32],
            has_tpm: false,
        }
    }

    fn controller(&self) -> Result<Controller, BootstrapError> {
        let quoting_key = self.has_tpm.then_some([1; 64]);
        let certificate = self.manufacturer.certify(DEVICE, public(&SEEDS[1]), quoting_key);
        let keys = ControllerKeys::new(
            certificate,
            PROGRAM,
            [&self.hardware, &SEEDS[2]],
            [self.controller_vendor, public(&SEEDS[4])],
        );
        Controller::begin(keys, self.controller_binding)
    }

    fn vendor(&self) -> (Vendor, Message) {
        let key = Zeroizing::new([11; 32]);
        let random = Randomness { nonce: self.nonce, key, image_nonce: [12; 24] };
        Vendor::begin(self.policy.clone(), self.vendor_binding, random, &self.configuration)
    }

    /// A run in which `change` may change each message on its way.
    fn run(
        &self,
        mut change: impl FnMut(Message) -> Message,
    ) -> Result<(Configuration, [u8; 32]), BootstrapError> {
        let mut controller = self.controller()?;
        let (mut vendor, hello) = self.vendor();
        let mut next = Some(hello);
        let mut stored = None;
        while let Some(message) = next {
            let reply = match controller.take(&change(message).encode(), |_| Ok(None))? {
                Reaction::Reply(reply) => reply,
                Reaction::Store(configuration, reply) => {
                    stored = Some(configuration);
                    reply
                }
            };
            next = vendor.take(&change(reply).encode())?;
        }
        Ok((stored.unwrap(), vendor.provisioned().unwrap().message_key))
    }

    fn changed_evidence(
        &self,
        change: impl Fn(&mut Evidence),
    ) -> Result<(Configuration, [u8; 32]), BootstrapError> {
        self.run(|message| match message {
            Message::Evidence(mut evidence) => {
                change(&mut evidence);
                Message::Evidence(evidence)
            }
            other => other,
        })
    }
}

#[test]
fn an_honest_run_delivers_configuration_and_key() {
    let (configuration, message_key) = World::new().run(|message| message).unwrap();
    assert_eq!(configuration.secrets, [(1, SECRET)]);
    assert_eq!(message_key, public(&SEEDS[4]));
}

#[test]
fn a_device_of_another_manufacturer_is_refused() {
    let mut world = World::new();
    world.manufacturer = Manufacturer::new(&[13; 32]);
    assert!(matches!(world.run(|it| it), Err(BootstrapError::Certificate)));
}

#[test]
fn a_certificate_with_another_device_or_key_is_refused() {
    let world = World::new();
    let changes: [fn(&mut Evidence); 3] = [
        |it| it.certificate.device = 9,
        |it| it.certificate.hardware_key[0] ^= 1,
        |it| it.certificate.quoting_key = Some([[0; 32]; 2]),
    ];
    for change in changes {
        assert!(matches!(world.changed_evidence(change), Err(BootstrapError::Certificate)));
    }
}

#[test]
fn a_revoked_device_is_refused() {
    let mut world = World::new();
    world.policy.revoked.push(DEVICE);
    assert!(matches!(world.run(|it| it), Err(BootstrapError::Revoked(DEVICE))));
}

#[test]
fn a_measurement_or_key_that_the_device_has_not_signed_is_refused() {
    let world = World::new();
    let changes: [fn(&mut Evidence); 3] =
        [|it| it.measurement = [0; 32], |it| it.vendor_key[0] ^= 1, |it| it.message_key[0] ^= 1];
    for change in changes {
        assert!(matches!(world.changed_evidence(change), Err(BootstrapError::Measurement)));
    }
    let other_key = world.changed_evidence(|it| it.controller_key[0] ^= 1);
    assert!(matches!(other_key, Err(BootstrapError::OtherPeer)));
}

#[test]
fn a_program_with_the_certificate_and_without_the_devices_key_is_refused() {
    let mut world = World::new();
    world.hardware = [15; 32];
    assert!(matches!(world.run(|it| it), Err(BootstrapError::Measurement)));
}

/// An attacker who has learnt the key of an earlier connection signs a new nonce with it.
#[test]
fn a_measurement_of_an_earlier_connection_is_refused_also_from_its_controllers_key() {
    let mut world = World::new();
    let mut earlier = None;
    world.run(|message| keep(message, &mut earlier)).unwrap();
    let earlier = earlier.unwrap();
    world.nonce = [16; 32];
    let exporter = world.vendor_binding.exporter;
    let replayed = world.changed_evidence(|evidence| {
        *evidence = earlier.clone();
        let about = Sha256::digest(evidence.device_signature.concat());
        let signed = [&b"SMT evidence  v1"[..], &[16; 32], &exporter, &about].concat();
        let proof = SigningKey::from_bytes(&SEEDS[2]).sign(&signed).to_bytes();
        evidence.proof = [proof[..32].try_into().unwrap(), proof[32..].try_into().unwrap()];
    });
    assert!(matches!(replayed, Err(BootstrapError::Measurement)));
}

#[test]
fn evidence_of_an_earlier_connection_is_refused() {
    let mut world = World::new();
    let mut earlier = None;
    world.run(|message| keep(message, &mut earlier)).unwrap();
    let earlier = earlier.unwrap();
    world.nonce = [16; 32];
    let replayed = world.changed_evidence(|evidence| *evidence = earlier.clone());
    assert!(matches!(replayed, Err(BootstrapError::Stale)));
}

fn keep(message: Message, kept: &mut Option<Evidence>) -> Message {
    if let Message::Evidence(evidence) = &message {
        *kept = Some((**evidence).clone());
    }
    message
}

#[test]
fn a_program_that_is_not_published_is_refused() {
    let mut world = World::new();
    world.policy.programs.pop();
    let Err(BootstrapError::Program(program)) = world.run(|it| it) else {
        panic!("it was taken");
    };
    assert_eq!(program, "05".repeat(32));
}

#[test]
fn a_vendor_refuses_a_program_with_another_vendors_key() {
    let mut world = World::new();
    world.controller_vendor = public(&[14; 32]);
    world.controller_binding.peer = world.controller_vendor;
    assert!(matches!(world.run(|it| it), Err(BootstrapError::OtherVendor)));
}

#[test]
fn a_controller_refuses_a_connection_of_another_vendor() {
    let mut world = World::new();
    world.controller_binding.peer = public(&[14; 32]);
    assert!(matches!(world.controller(), Err(BootstrapError::OtherVendor)));
}

#[test]
fn a_connection_that_ends_at_another_key_is_refused() {
    let mut world = World::new();
    world.vendor_binding.peer = public(&[14; 32]);
    assert!(matches!(world.run(|it| it), Err(BootstrapError::OtherPeer)));
}

#[test]
fn evidence_of_another_connection_is_refused() {
    let mut world = World::new();
    world.vendor_binding.exporter = [0; 32];
    assert!(matches!(world.run(|it| it), Err(BootstrapError::Stale)));
}

#[test]
fn evidence_over_another_nonce_is_refused() {
    let run = World::new().run(|message| match message {
        Message::Nonce(_) => Message::Nonce([0; 32]),
        other => other,
    });
    assert!(matches!(run, Err(BootstrapError::Stale)));
}

#[test]
fn a_device_without_a_tpm_is_refused_if_the_vendor_wants_one() {
    let mut world = World::new();
    world.policy.needs_quote = true;
    assert!(matches!(world.run(|it| it), Err(BootstrapError::Quote)));
    world.policy.needs_quote = false;
    world.policy.registers = Some([0; 32]);
    assert!(matches!(world.run(|it| it), Err(BootstrapError::Quote)));
    (world.policy.registers, world.policy.events) = (None, Some("0 any".parse().unwrap()));
    assert!(matches!(world.run(|it| it), Err(BootstrapError::Quote)));
}

#[test]
fn a_device_that_hides_its_tpm_is_refused() {
    let mut world = World::new();
    world.has_tpm = true;
    assert!(matches!(world.run(|it| it), Err(BootstrapError::Quote)));
}

#[test]
fn a_report_of_another_image_is_refused() {
    let run = World::new().run(|message| match message {
        Message::Image(mut image) => {
            image[30] ^= 1;
            Message::Image(image)
        }
        other => other,
    });
    assert!(matches!(run, Err(BootstrapError::Report)));
}

#[test]
fn a_report_that_is_not_signed_is_refused() {
    let run = World::new().run(|message| match message {
        Message::Report(digest, _) => Message::Report(digest, [[0; 32]; 2]),
        other => other,
    });
    assert!(matches!(run, Err(BootstrapError::Report)));
}

#[test]
fn a_key_that_does_not_open_the_configuration_is_refused() {
    let run = World::new().run(|message| match message {
        Message::Key(_) => Message::Key(ImageKey([0; 32])),
        other => other,
    });
    assert!(matches!(run, Err(BootstrapError::Key)));
}

/// Another device of the same manufacturer, genuine and in the wrong hands.
#[test]
fn a_vendor_gives_another_device_than_the_configurations_nothing() {
    let mut world = World::new();
    world.configuration.device = 9;
    let mut has_sent_an_image = false;
    let run = world.run(|message| {
        has_sent_an_image |= matches!(message, Message::Image(_));
        message
    });
    assert!(matches!(run, Err(BootstrapError::OtherDevice { device: DEVICE, configured: 9 })));
    assert!(!has_sent_an_image);
}

/// The vendor's own check is passed by: its configuration says another number than its request.
#[test]
fn a_controller_refuses_a_configuration_of_another_device() {
    let (ours, mut other) = (World::new(), World::new());
    other.configuration.device = 9;
    let mut controller = ours.controller().unwrap();
    let other_image = {
        let manufacturer = &other.manufacturer;
        let certificate = manufacturer.certify(9, public(&SEEDS[1]), None);
        let keys = ControllerKeys::new(
            certificate,
            PROGRAM,
            [&SEEDS[1], &SEEDS[2]],
            [other.controller_vendor, public(&SEEDS[4])],
        );
        let mut nine = Controller::begin(keys, other.controller_binding).unwrap();
        let (mut vendor, hello) = other.vendor();
        let Ok(Reaction::Reply(evidence)) = nine.take(&hello.encode(), |_| Ok(None)) else {
            panic!("no evidence");
        };
        vendor.take(&evidence.encode()).unwrap().unwrap()
    };
    let messages = [Message::Nonce([10; 32]), other_image, Message::Key(ImageKey([11; 32]))];
    let mut taken = messages.iter().map(|it| controller.take(&it.encode(), |_| Ok(None)));
    assert!(matches!(taken.next().unwrap(), Ok(Reaction::Reply(_))));
    assert!(matches!(taken.next().unwrap(), Ok(Reaction::Reply(_))));
    let refused = taken.next().unwrap();
    assert!(matches!(refused, Err(BootstrapError::OtherDevice { device: DEVICE, configured: 9 })));
}

#[test]
fn an_acknowledgement_that_is_not_signed_is_refused() {
    let run = World::new().run(|message| match message {
        Message::Done(_) => Message::Done([[0; 32]; 2]),
        other => other,
    });
    assert!(matches!(run, Err(BootstrapError::Report)));
}

#[test]
fn no_secret_leaves_the_vendor_before_the_report() {
    let mut seen = Vec::new();
    let run = World::new().run(|message| {
        if !matches!(message, Message::Key(_) | Message::Done(_)) {
            seen.extend_from_slice(&message.encode());
        }
        message
    });
    run.unwrap();
    assert!(!seen.windows(16).any(|it| it == &SECRET[..16] || it == [11; 16]));
}

#[test]
fn a_message_out_of_turn_is_refused() {
    let world = World::new();
    for message in
        [Message::Key(ImageKey([0; 32])), Message::Image(vec![]), Message::Done([[0; 32]; 2])]
    {
        let taken = world.controller().unwrap().take(&message.encode(), |_| Ok(None));
        assert!(matches!(taken, Err(BootstrapError::Malformed(_))));
        let taken = world.vendor().0.take(&message.encode());
        assert!(matches!(taken, Err(BootstrapError::Malformed(_))));
    }
    let taken = world.controller().unwrap().take(&[0xff; 40], |_| Ok(None));
    assert!(matches!(taken, Err(BootstrapError::Malformed(_))));
}

#[test]
fn no_secret_is_printed() {
    let configuration = Configuration { device: DEVICE, secrets: vec![(1, SECRET)] };
    let printed = format!("{configuration:?} {:?}", Message::Key(ImageKey(SECRET)));
    assert!(!printed.contains("171") && !printed.to_lowercase().contains("ab, "), "{printed}");
}

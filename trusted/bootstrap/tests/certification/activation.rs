// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Credentials that TPMs in software open, or do not.

use std::process::Command;

use smt_bootstrap::{BootstrapError, CertificationMessage as Message, Certified, endorsement_kind};
use smt_device::tpm::{
    EndorsementKind, QuotingKey, TpmError, Transport, endorsement_certificate, judge_quoting_key,
};
use smt_test_machine::{Directory, Tpm, left_out};

use crate::world::{DEVICE, World};

/// A TPM whose vendor is an authority.
struct Endorsed {
    directory: Directory,
    tpm: Tpm,
    way: Transport,
    quoting_key: Vec<u8>,
}

impl Endorsed {
    fn new() -> Option<Self> {
        let directory = Directory::new();
        if Command::new("tpm2_createek").arg("--version").output().is_err() {
            left_out("tpm2_createek", "tpm2-tools");
            return None;
        }
        let tpm = Tpm::start(&directory.0.join("tpm"))?;
        let mut made = Self {
            way: Transport::open(&tpm.socket).unwrap(),
            directory,
            tpm,
            quoting_key: vec![],
        };
        let key = QuotingKey::create(&mut made.way).unwrap();
        made.quoting_key = key.public_area().to_vec();
        key.let_go(&mut made.way).unwrap();
        Some(made)
    }

    /// Has another program do something with the TPM, which takes one connection at a time.
    fn tool(&mut self, arguments: &str) {
        let (local, _) = std::os::unix::net::UnixStream::pair().unwrap();
        self.way = Transport::Unix(local);
        let mut words = arguments.split(' ');
        let done = Command::new(words.next().unwrap())
            .args(["-T", &format!("swtpm:path={}", self.tpm.socket)])
            .args(words)
            .current_dir(&self.directory.0)
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments}: {}", String::from_utf8_lossy(&done.stderr));
        self.way = Transport::open(&self.tpm.socket).unwrap();
    }

    /// The endorsement key in PEM, as another program makes it.
    fn key(&mut self, kind: EndorsementKind) -> String {
        let name = if kind == EndorsementKind::Rsa { "rsa" } else { "ecc" };
        self.tool(&format!("tpm2_createek -G {name} -c context -u key.pem -f pem"));
        self.tool("tpm2_flushcontext -t");
        std::fs::read_to_string(self.directory.path("key.pem")).unwrap()
    }

    /// A certification with this TPM, in which `change` may change each message on its way.
    fn certify(
        &mut self,
        world: &World,
        kind: EndorsementKind,
        change: impl FnMut(Message) -> Message,
    ) -> Result<Certified, BootstrapError> {
        let way = &mut self.way;
        world.run(change, |credential, data| kind.activate(way, credential, data))
    }

    /// Writes a certificate to where vendors write it, with room behind.
    fn store(&mut self, kind: EndorsementKind, certificate: &[u8]) {
        let index = if kind == EndorsementKind::Rsa { "0x01c00002" } else { "0x01c0000a" };
        let padded = [certificate, &[0xff; 50]].concat();
        std::fs::write(self.directory.path("certificate"), &padded).unwrap();
        let attributes = "ppread|ppwrite|ownerread|authread|no_da|platformcreate";
        self.tool(&format!("tpm2_nvdefine -C p -s {} -a {attributes} {index}", padded.len()));
        self.tool(&format!("tpm2_nvwrite -C p -i certificate {index}"));
    }
}

#[test]
fn a_device_with_an_endorsed_tpm_is_certified_from_afar() {
    for kind in [EndorsementKind::Ecc, EndorsementKind::Rsa] {
        let Some(mut tpm) = Endorsed::new() else {
            return;
        };
        assert_eq!(endorsement_certificate(&mut tpm.way).unwrap(), None);
        let mut world = World::new();
        let certificate = world.authority.certify(&tpm.key(kind));
        tpm.store(kind, &certificate);
        let found = endorsement_certificate(&mut tpm.way).unwrap().unwrap();
        assert_eq!(found, (kind, certificate));
        assert_eq!(endorsement_kind(&found.1).unwrap(), kind);
        (world.quoting_key, world.endorsement_certificate) = (tpm.quoting_key.clone(), found.1);
        let certified = tpm.certify(&world, kind, |it| it);
        let certified = certified.unwrap();
        let certificate = certified.certificate;
        certificate.verify(&World::manufacturer().public_key()).unwrap();
        assert_eq!((certificate.device, certificate.hardware_key), (DEVICE, World::hardware_key()));
        let point = judge_quoting_key(&tpm.quoting_key).unwrap();
        assert_eq!(certificate.quoting_key.unwrap().concat(), point);
        // The digest that was told is the one that takes this TPM alone.
        world.certification.endorsement_digest = Some(certified.endorsement_digest);
        let again = tpm.certify(&world, kind, |it| it);
        assert_eq!(again.unwrap().endorsement_digest, certified.endorsement_digest);
    }
}

fn is_refused_by_tpm<T>(ended: &Result<T, BootstrapError>) -> bool {
    let refused = |command: &str| command == "TPM2_ActivateCredential";
    matches!(ended, Err(BootstrapError::Tpm(TpmError::Refused { command, .. })) if refused(command))
}

#[test]
fn keys_of_two_tpms_are_not_certified_together() {
    let (Some(mut one), Some(mut two)) = (Endorsed::new(), Endorsed::new()) else {
        return;
    };
    let kind = EndorsementKind::Ecc;
    let mut world = World::new();
    // The certificate is of `two`, and whoever has `one` shows it.
    world.endorsement_certificate = world.authority.certify(&two.key(kind));
    world.quoting_key.clone_from(&one.quoting_key);
    for tpm in [&mut one, &mut two] {
        let ended = tpm.certify(&world, kind, |it| it);
        assert!(is_refused_by_tpm(&ended), "{ended:?}");
    }
    // Both keys are of `two`: it alone opens the credential.
    world.quoting_key.clone_from(&two.quoting_key);
    let ended = one.certify(&world, kind, |it| it);
    assert!(is_refused_by_tpm(&ended), "{ended:?}");
    two.certify(&world, kind, |it| it).unwrap();
}

#[test]
fn a_tpm_opens_no_altered_credential_and_the_next_one_still() {
    let Some(mut tpm) = Endorsed::new() else {
        return;
    };
    let kind = EndorsementKind::Ecc;
    let mut world = World::new();
    world.endorsement_certificate = world.authority.certify(&tpm.key(kind));
    world.quoting_key.clone_from(&tpm.quoting_key);
    // The MAC's length and bytes, the secret, and the point of the seed.
    for place in [1, 2, 33, 34, 36, 67, 68 + 2, 68 + 40] {
        let ended = tpm.certify(&world, kind, |message| match message {
            Message::Challenge { mut blob, mut seed } => {
                assert_eq!(blob.len(), 68);
                *blob.iter_mut().chain(&mut seed).nth(place).unwrap() ^= 1;
                Message::Challenge { blob, seed }
            }
            other => other,
        });
        assert!(is_refused_by_tpm(&ended), "byte {place}: {ended:?}");
    }
    // More failures than a TPM has places for keys and sessions: none was left behind.
    tpm.certify(&world, kind, |it| it).unwrap();
}

#[test]
fn an_answer_of_an_earlier_activation_or_with_another_quote_is_refused() {
    let Some(mut tpm) = Endorsed::new() else {
        return;
    };
    let kind = EndorsementKind::Ecc;
    let mut world = World::new();
    world.endorsement_certificate = world.authority.certify(&tpm.key(kind));
    world.quoting_key.clone_from(&tpm.quoting_key);
    let mut earlier = None;
    let mut run = |world: &World, replay: Option<Message>, change: fn(&mut Message)| {
        let ended = tpm.certify(world, kind, |mut message| {
            if !matches!(message, Message::Answer { .. }) {
                return message;
            }
            change(&mut message);
            earlier = Some(message.clone());
            replay.clone().unwrap_or(message)
        });
        ended.map(|_| earlier.clone())
    };
    let first = run(&world, None, |_| ()).unwrap();
    // Another secret over the same connection, and the same secret over another one.
    world.secret = [15; 32];
    assert!(matches!(run(&world, first.clone(), |_| ()), Err(BootstrapError::NotActivated)));
    (world.secret, world.nonce) = ([11; 32], [16; 32]);
    assert!(matches!(run(&world, first, |_| ()), Err(BootstrapError::NotActivated)));
    let altered = run(&world, None, |message| {
        if let Message::Answer { statement, .. } = message {
            statement[50] ^= 1;
        }
    });
    assert!(matches!(altered, Err(BootstrapError::Quote)), "{altered:?}");
}

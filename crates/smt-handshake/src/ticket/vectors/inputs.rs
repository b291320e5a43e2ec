// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The inputs of the vectors: certificates and ML-KEM keys from `inputs.json`, all else from a hash
//! chain.

use std::sync::LazyLock;

use aws_lc_rs::agreement::{self, ECDH_P256, UnparsedPublicKey, X25519};
use rustls::crypto::{ActiveKeyExchange, SharedSecret};
use rustls::{Error, NamedGroup, PeerMisbehaved, RootCertStore};
use rustls_pki_types::CertificateDer;
use serde_json::{Value, json};
use smt_record::{AwsLc, HashProvider};

use crate::identity::Identity;
use crate::ticket::share::StaticKey;
use crate::tls::algorithms::Group;
use crate::trust::{Anchors, Trust};

static INPUTS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("inputs.json")).unwrap());

/// Bytes that depend on the label alone.
pub(super) fn bytes<const N: usize>(label: &str) -> [u8; N] {
    let hash = AwsLc.sha256(&[b"SMT ticket vectors", label.as_bytes()]);
    std::array::from_fn(|at| hash[at])
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap().as_bytes().chunks(2);
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

/// Certificates and keys, as the file has them.
pub(super) fn credentials() -> Value {
    INPUTS["credentials"].clone()
}

/// Trust in the root of all certificates.
pub(super) fn trust() -> Trust {
    let root = from_hex(&INPUTS["credentials"]["authority"]);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(root)).unwrap();
    Trust { anchors: Anchors::Roots(roots.into()), revocation: None }
}

/// `server` or `client`.
pub(super) fn identity(whose: &str) -> Identity {
    let of = &INPUTS["credentials"][whose];
    Identity::from_der(vec![from_hex(&of["certificate"])], from_hex(&of["key"])).unwrap()
}

/// A key pair: its private parts as the file names them, and the key.
pub(super) fn key_pair(group: Group, whose: &str) -> (Value, StaticKey) {
    let curve: [u8; 32] = bytes(&format!("{whose}, {group:?}"));
    let kem = has_kem(group).then(|| &INPUTS["ml_kem_768"][whose]);
    let decapsulation = kem.map(|kem| from_hex(&kem["decapsulation_key"]));
    let key = StaticKey::given(group, &curve, decapsulation.as_deref()).unwrap();
    let seed = kem.map(|kem| kem["seed"].clone());
    (json!({ "curve": hex(&curve), "ml_kem_seed": seed }), key)
}

/// A share that answers one, with its private part and the secret of both.
pub(super) struct Answer {
    pub(super) private: Value,
    pub(super) share: Vec<u8>,
    pub(super) secret: Vec<u8>,
}

/// The answer to the share of the key pair of that name.
pub(super) fn answer(group: Group, whose: &str, to: (&str, &StaticKey)) -> Answer {
    let curve: [u8; 32] = bytes(&format!("{whose}, {group:?}"));
    let (name, key) = to;
    let (mut share, mut secret) = (Vec::new(), Vec::new());
    let mut on_curve = key.share();
    if has_kem(group) {
        let kem = &INPUTS["ml_kem_768"][name];
        share = from_hex(&kem["ciphertext"]);
        secret = from_hex(&kem["secret"]);
        on_curve = &on_curve[on_curve.len() - 32..];
    }
    let algorithm = match group {
        Group::P256 => &ECDH_P256,
        Group::X25519 | Group::X25519MlKem768 => &X25519,
    };
    let private = agreement::PrivateKey::from_private_key(algorithm, &curve).unwrap();
    share.extend_from_slice(private.compute_public_key().unwrap().as_ref());
    let peer = UnparsedPublicKey::new(algorithm, on_curve);
    agreement::agree(&private, peer, (), |shared| {
        secret.extend_from_slice(shared);
        Ok(())
    })
    .unwrap();
    assert_eq!(key.agree(&share).unwrap().as_slice(), secret);
    Answer { private: json!({ "curve": hex(&curve) }), share, secret }
}

/// A key pair as a client's ephemeral one, which its TLS library would have drawn.
pub(super) struct Given {
    pub(super) group: NamedGroup,
    pub(super) key: StaticKey,
}

impl ActiveKeyExchange for Given {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let secret = self.key.agree(peer);
        let secret = secret.map_err(|_| Error::from(PeerMisbehaved::InvalidKeyShare))?;
        Ok(SharedSecret::from(&secret[..]))
    }

    fn pub_key(&self) -> &[u8] {
        self.key.share()
    }

    fn group(&self) -> NamedGroup {
        self.group
    }
}

const fn has_kem(group: Group) -> bool {
    matches!(group, Group::X25519MlKem768)
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of clients, and signatures.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};

use crate::client_table::{IN_PROGRESS_MAX, first_number, session_of};
use crate::digest::{Digest, digest};
use crate::group::PublicKey;
use crate::signed_together::{KnownRoots, Proof};

/// The beginning of the hashes that are signed.
pub(crate) const SYSTEM: &str = "replica";

/// The kind of what is signed.
const REQUESTS: &str = "requests";

/// Hashes on the way of a request to its root, at most: those that may be in progress together.
pub const REQUEST_WAY_MAX: usize = IN_PROGRESS_MAX.ilog2() as usize;

/// A signature's 64 bytes as two halves.
pub type SignatureBytes = [[u8; 32]; 2];

/// A signed request (paper, appendix C.1).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Request {
    /// The client's number in the group.
    pub client: u32,
    /// The request's number: its session and its place in the session
    /// ([`crate::session_of`]).
    pub number: u64,
    /// Bytes that the client chose for this request. The reply is bound to them.
    pub nonce: [u8; 16],
    /// The service's operation.
    pub operation: Vec<u8>,
    /// The proof that the client has signed all this.
    pub proof: Proof,
}

impl Request {
    /// Signs a request.
    pub fn sign(key: &SigningKey, client: u32, number: u64, body: ([u8; 16], Vec<u8>)) -> Self {
        let (nonce, operation) = body;
        let mut request = Self { client, number, nonce, operation, proof: Proof::default() };
        Self::sign_all(&mut [&mut request], key);
        request
    }

    /// Signs requests that are in progress together, with one signature.
    pub(crate) fn sign_all(requests: &mut [&mut Self], key: &SigningKey) {
        let digests = requests.iter().map(|it| it.digest()).collect();
        for (request, proof) in requests.iter_mut().zip(Proof::of_all(REQUESTS, digests, key)) {
            request.proof = proof;
        }
    }

    /// Whether the request begins a session, and executes nothing.
    #[must_use]
    pub fn begins_session(&self) -> bool {
        self.number == first_number(session_of(self.number)) && self.operation.is_empty()
    }

    /// The hash of all but the proof.
    pub fn digest(&self) -> Digest {
        let (client, number) = (self.client.to_be_bytes(), self.number.to_be_bytes());
        digest(SYSTEM, "request", &[&client, &number, &self.nonce, &self.operation])
    }

    /// Whether the owner of `key` has signed this request, alone or with others that may be in
    /// progress beside it.
    pub fn is_signed_by(&self, key: &PublicKey, known: &KnownRoots) -> bool {
        known.proves(key, (REQUESTS, self.digest(), REQUEST_WAY_MAX), &self.proof)
    }
}

/// Signs a hash.
pub fn sign(key: &SigningKey, digest: &Digest) -> SignatureBytes {
    let signature = key.sign(digest);
    [*signature.r_bytes(), *signature.s_bytes()]
}

/// Whether the owner of `key` has signed a hash.
pub fn verifies(key: &PublicKey, digest: &Digest, [r, s]: &SignatureBytes) -> bool {
    let signature = Signature::from_components(*r, *s);
    VerifyingKey::from_bytes(key).is_ok_and(|key| key.verify_strict(digest, &signature).is_ok())
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of clients, and signatures.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, digest};
use crate::group::PublicKey;

/// The beginning of the hashes that are signed.
pub(crate) const SYSTEM: &str = "replica";

/// A signature's 64 bytes as two halves.
pub type SignatureBytes = [[u8; 32]; 2];

/// A signed request (paper, appendix C.1).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Request {
    /// The client's number in the group.
    pub client: u32,
    /// The request's number, above those of all earlier requests of this client.
    pub number: u64,
    /// Bytes that the client chose for this request. The reply is bound to them.
    pub nonce: [u8; 16],
    /// The service's operation.
    pub operation: Vec<u8>,
    /// The client's signature over the digest.
    pub signature: SignatureBytes,
}

impl Request {
    /// Signs a request.
    pub fn sign(key: &SigningKey, client: u32, number: u64, body: ([u8; 16], Vec<u8>)) -> Self {
        let (nonce, operation) = body;
        let mut request = Self { client, number, nonce, operation, signature: [[0; 32]; 2] };
        request.signature = sign(key, &request.digest());
        request
    }

    /// The hash of all but the signature.
    pub fn digest(&self) -> Digest {
        let (client, number) = (self.client.to_be_bytes(), self.number.to_be_bytes());
        digest(SYSTEM, "request", &[&client, &number, &self.nonce, &self.operation])
    }

    /// Whether the owner of `key` has signed this request.
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        verifies(key, &self.digest(), &self.signature)
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

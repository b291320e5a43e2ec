// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The first thing in the sealed part of flight 1: the client's certificate and its signature over
//! the hello and the early data (SPEC §6.7).

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::sign::CertifiedKey;
use rustls_pki_types::CertificateDer;
use smt_record::{AwsLc, HashProvider};

use crate::ticket::codec::{BadLength, Reader, put_long};
use crate::ticket::schedule::TranscriptHash;
use crate::ticket::signature::{Context, Signature, is_valid, sign};

/// A client's certificate and proof; no certificates if it shows none.
#[derive(Debug, Default)]
pub(super) struct ClientProof {
    pub(super) chain: Vec<CertificateDer<'static>>,
    signature: Option<Signature>,
}

impl ClientProof {
    /// # Errors
    /// In words: the key cannot sign.
    pub(super) fn new(identity: &CertifiedKey, signed: &Signed<'_>) -> Result<Self, String> {
        Ok(Self {
            chain: identity.cert.clone(),
            signature: Some(sign(identity, Context::Client, &signed.bytes())?),
        })
    }

    /// The bytes; `None` if the chain is too long.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        let (mut chain, mut out) = (Vec::new(), Vec::new());
        for certificate in &self.chain {
            put_long(&mut chain, certificate)?;
        }
        put_long(&mut out, &chain)?;
        if let Some(signature) = &self.signature {
            out.extend_from_slice(&signature.scheme.to_be_bytes());
            put_long(&mut out, &signature.bytes)?;
        }
        Some(out)
    }

    /// Reads a proof from the front of the sealed part; the rest is early data.
    pub(super) fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), BadLength> {
        let mut reader = Reader::new(bytes);
        let mut rest = Reader::new(reader.long()?);
        let mut chain = Vec::new();
        while !rest.is_empty() {
            chain.push(CertificateDer::from(rest.long()?.to_vec()));
        }
        let signature = match chain.is_empty() {
            true => None,
            false => Some(Signature { scheme: reader.u16()?, bytes: reader.long()?.to_vec() }),
        };
        Ok((Self { chain, signature }, reader.rest()))
    }

    /// Whether the holder of the leaf's key has signed this hello and early data.
    pub(super) fn is_signed(
        &self,
        algorithms: &WebPkiSupportedAlgorithms,
        signed: &Signed<'_>,
    ) -> bool {
        let Some((leaf, signature)) = self.chain.first().zip(self.signature.as_ref()) else {
            return false;
        };
        is_valid(algorithms, leaf, Context::Client, &signed.bytes(), signature)
    }
}

/// The content of a client's signature.
pub(super) struct Signed<'a> {
    pub(super) hello: &'a TranscriptHash,
    /// Empty if there is none. A holder of the ticket's private key can seal other data behind a
    /// certificate; the signature is what binds it to the client.
    pub(super) early_data: &'a [u8],
}

impl Signed<'_> {
    fn bytes(&self) -> Vec<u8> {
        let early_data = AwsLc.sha256(&[self.early_data]);
        [self.hello.as_slice(), &early_data].concat()
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests and replies, as postcard encodes them, and what both sides know of connections. Each
//! request has a stream of its own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quinn::{IdleTimeout, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
pub enum Request {
    Get { key: String },
    Set { key: String, value: Bytes },
    Delete { key: String },
    List { prefix: String },
}

#[derive(Deserialize, Serialize)]
pub enum Reply {
    Value(Option<Bytes>),
    Stored,
    Deleted(bool),
    Keys(Vec<String>),
    Refused { code: u32, text: String },
}

pub const ALPN: &[u8] = b"kv/1";
/// The server ends: what carries this code has not run.
pub const SHUTTING_DOWN: VarInt = VarInt::from_u32(1);
/// The caller has given up.
pub const CANCELLED: VarInt = VarInt::from_u32(2);

/// A peer that is silent for two seconds is gone.
pub fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(2_000))));
    transport.keep_alive_interval(Some(Duration::from_millis(500)));
    Arc::new(transport)
}

pub type Credentials = (RootCertStore, Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

pub fn credentials(
    ca: &std::path::Path,
    cert: &std::path::Path,
    key: &std::path::Path,
) -> Result<Credentials, Box<dyn std::error::Error>> {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_file_iter(ca)? {
        roots.add(root?)?;
    }
    let chain = CertificateDer::pem_file_iter(cert)?.collect::<Result<_, _>>()?;
    Ok((roots, chain, PrivateKeyDer::from_pem_file(key)?))
}

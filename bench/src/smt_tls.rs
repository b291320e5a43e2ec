// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT's key exchange as all peers here are set up: AES-128-GCM and X25519 alone, the run's
//! certificates.

use std::path::Path;

use smt::{Identity, Trust};
use smt_handshake::{Algorithms, ClientTls, Group, ServerTls, TlsProvider};
use smt_record::Suite;

use crate::certificates::{authority, certificate, key};
use crate::failure::Failure;

/// The TLS provider of a server or a client.
pub(crate) fn provider(directory: &Path, is_server: bool) -> Result<TlsProvider, Failure> {
    let algorithms = Algorithms { suites: vec![Suite::Aes128Gcm], groups: vec![Group::X25519] };
    let (client, server) = if is_server {
        let identity = Identity::from_pem_files(certificate(directory), key(directory))?;
        (None, Some(ServerTls::new(identity)))
    } else {
        let trust = Trust::roots_from_pem_files(&[authority(directory)])?;
        (Some(ClientTls::new(trust)), None)
    };
    Ok(TlsProvider::new(client, server, &algorithms)?)
}

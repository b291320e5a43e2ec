// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a TLS client calls servers: by a DNS name or an address, or by a SPIFFE ID.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use smt_proto::key_exchange::HandshakeFailure;

use super::Library;
use super::exchange::Dates;
use super::resumption::{ResumingClient, Tickets};
use super::verifiers::server_id_verifier;
use crate::failure::caller;
use crate::spiffe_id::SpiffeId;
use crate::trust::Trust;

/// How servers are called.
#[derive(Clone)]
pub(super) struct ClientSide {
    pub(super) config: ResumingClient,
    /// The trust of the configuration, for servers that are called by their SPIFFE ID.
    pub(super) trust: Trust,
    pub(super) dates: Dates,
}

/// A call of a server: the configuration, and the server's name in TLS's form.
pub(super) struct ServerCall {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

impl ClientSide {
    /// How the server of this name is called, and by which tickets.
    pub(super) fn to_call(
        &self,
        server_name: &str,
        is_retry: bool,
        library: &Library,
    ) -> Result<(ServerCall, Tickets), HandshakeFailure> {
        if SpiffeId::is_meant(server_name) {
            // Another verifier judges the server, so no session of this one's is resumed.
            let call = self.to_call_by_id(server_name, library)?;
            return Ok((call, Tickets::None));
        }
        let name = ServerName::try_from(server_name.to_owned()).map_err(|_| {
            caller(format!(
                "{server_name:?} is no server name: give a DNS name, an IP address or a SPIFFE ID"
            ))
        })?;
        let (config, tickets) = self.config.for_attempt(is_retry);
        Ok((ServerCall { config, name }, tickets))
    }

    fn to_call_by_id(
        &self,
        server_name: &str,
        library: &Library,
    ) -> Result<ServerCall, HandshakeFailure> {
        let unusable = |error: &dyn std::fmt::Display| caller(format!("{server_name:?}: {error}"));
        let id = SpiffeId::parse(server_name).map_err(|error| unusable(&error))?;
        let name = name_for(&id);
        let verifier = server_id_verifier(&self.trust, id, &library.provider);
        let verifier = verifier.map_err(|error| unusable(&error))?;
        let mut config = self.config.without_resumption();
        config.dangerous().set_certificate_verifier(verifier);
        config.enable_sni = false;
        Ok(ServerCall { config: Arc::new(config), name })
    }
}

/// A DNS name that stands for an ID where TLS's library wants one. It is never sent, and no two IDs
/// have one, in case that the library keeps something by name.
pub(super) fn name_for(id: &SpiffeId) -> ServerName<'static> {
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, id.as_str().as_bytes());
    let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let (one, other) = hex.split_at(hex.len() / 2);
    let name = format!("{one}.{other}.spiffe.invalid");
    ServerName::try_from(name).expect("hexadecimal labels of 32 letters are a DNS name")
}

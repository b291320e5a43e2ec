// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes the verifier of an endpoint's peers from the trust that it was given.
//!
//! Roots have the library's own judgement of chains (`verify_chain.rs`), with revocation lists if
//! there are some; what is pinned is compared (`verify_pinned.rs`).

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use crate::revocation::RevocationLists;
use crate::spiffe_id::SpiffeId;
use crate::tls::verify::{Form, Verifier};
use crate::tls::verify_chain::{ClientChains, ServerChains};
use crate::tls::verify_pinned::Pinned;
use crate::tls::verify_server_id::{Issuers, ServerOfId};
use crate::tls::{ClientAuth, TlsConfigError};
use crate::trust::{Anchors, Trust};

/// Judges the servers of a client.
pub(crate) fn server_verifier(
    trust: Trust,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsConfigError> {
    let algorithms = provider.signature_verification_algorithms;
    let roots = match trust.anchors {
        Anchors::Roots(roots) => roots,
        Anchors::Pinned(known) => {
            check_no_lists(trust.revocation.as_ref())?;
            return Ok(Arc::new(Verifier::new(Pinned::servers(known), algorithms)));
        }
    };
    let mut builder = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider));
    if let Some(revocation) = &trust.revocation {
        builder = builder.with_crls(revocation.ders());
        builder = builder.enforce_revocation_expiration();
        if revocation.accepts_unknown() {
            builder = builder.allow_unknown_revocation_status();
        }
    }
    let chains = builder.build().map_err(|error| TlsConfigError::Trust(error.to_string()))?;
    Ok(Arc::new(Verifier::new(ServerChains(chains), algorithms)))
}

/// Judges the clients of a server, if it asks who they are.
pub(crate) fn client_verifier(
    client_auth: ClientAuth,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsConfigError> {
    let (trust, is_mandatory) = match client_auth {
        ClientAuth::None => return Ok(None),
        ClientAuth::Optional(trust) => (trust, false),
        ClientAuth::Required(trust) => (trust, true),
    };
    if trust.form() == Form::RawPublicKey && !is_mandatory {
        return Err(TlsConfigError::Trust(
            "clients show their public keys to servers that require them, or to none: require \
             them, or ask for nothing"
                .to_owned(),
        ));
    }
    let algorithms = provider.signature_verification_algorithms;
    let roots = match trust.anchors {
        Anchors::Roots(roots) => roots,
        Anchors::Pinned(known) => {
            check_no_lists(trust.revocation.as_ref())?;
            let pinned = Pinned { known, is_mandatory };
            return Ok(Some(Arc::new(Verifier::new(pinned, algorithms))));
        }
    };
    let mut builder = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider));
    if let Some(revocation) = &trust.revocation {
        builder = builder.with_crls(revocation.ders());
        builder = builder.enforce_revocation_expiration();
        if revocation.accepts_unknown() {
            builder = builder.allow_unknown_revocation_status();
        }
    }
    let builder = if is_mandatory { builder } else { builder.allow_unauthenticated() };
    let chains = builder.build().map_err(|error| TlsConfigError::Trust(error.to_string()))?;
    Ok(Some(Arc::new(Verifier::new(ClientChains(chains), algorithms))))
}

/// Judges the servers of one SPIFFE ID.
pub(super) fn server_id_verifier(
    trust: &Trust,
    id: SpiffeId,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsConfigError> {
    if trust.form() == Form::RawPublicKey {
        return Err(TlsConfigError::Trust(
            "a public key proves no SPIFFE ID; call the server by a name, or trust certificates"
                .to_owned(),
        ));
    }
    let algorithms = provider.signature_verification_algorithms;
    let issuers = match &trust.anchors {
        Anchors::Roots(roots) => Issuers::Roots {
            roots: Arc::clone(roots),
            revocation: trust.revocation.clone(),
            algorithms,
        },
        Anchors::Pinned(known) => {
            check_no_lists(trust.revocation.as_ref())?;
            Issuers::Pinned(Pinned::servers(known.clone()))
        }
    };
    let check = ServerOfId { id, issuers };
    Ok(Arc::new(Verifier::new(check, algorithms)))
}

/// Pinned certificates and keys are judged by no authority, and no authority revokes them.
fn check_no_lists(revocation: Option<&RevocationLists>) -> Result<(), TlsConfigError> {
    match revocation {
        None => Ok(()),
        Some(_) => Err(TlsConfigError::Trust(
            "pinned certificates and public keys have no authority that revokes them; take those that count no more off the pinned ones"
                .to_owned(),
        )),
    }
}

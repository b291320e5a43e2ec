// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Choices about who is believed: each one that an endpoint would not act on is an error.
//!
//! An option that looks like authentication and does nothing lets everybody in.

use super::Builder;
use crate::error::OpenError;

impl Builder {
    /// Refuses what a server (`accept`) or a client has no use for.
    pub(crate) fn check_credentials(&self, accept: bool) -> Result<(), OpenError> {
        let has_keys = !self.registered.is_empty();
        let checks = [
            (
                !accept && has_keys && self.has_tls_options(),
                "a client's registered key takes the place of TLS, so `identity`, `trust`, `client_auth`, `server_name`, \
                 `suites` and `groups` would do nothing beside it: leave them out, or leave the key out",
            ),
            (
                accept && has_keys && self.identity.is_none() && self.has_tls_options(),
                "a server without an `identity` has registered keys alone, so `trust`, `client_auth`, `server_name`, \
                 `suites` and `groups` would do nothing: leave them out, or give it the identity that TLS clients are shown",
            ),
            (
                !accept && self.registered.len() > 1,
                "a client calls with one registered key, and got several: give it one",
            ),
            (
                accept && self.trust.is_some(),
                "a server has no use for `trust`, which says whose certificates a client accepts: say by `client_auth` \
                 which clients are let in",
            ),
            (
                !accept && self.client_auth.is_some(),
                "a client has no use for `client_auth`, which says which clients a server lets in: say by `trust` \
                 whose certificates it accepts",
            ),
        ];
        match checks.iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, text)) => Err(OpenError::Options(text)),
            None => Ok(()),
        }
    }

    fn has_tls_options(&self) -> bool {
        self.identity.is_some()
            || self.trust.is_some()
            || self.client_auth.is_some()
            || self.server_name.is_some()
            || self.has_algorithms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::EphemeralCa;
    use smt_handshake::{ClientAuth, Group, KeyEnds, RegisteredKey, Trust};
    use smt_record::Suite;

    fn trust() -> Trust {
        EphemeralCa::new().unwrap().trust().unwrap()
    }

    fn server() -> Builder {
        Builder::new().identity(EphemeralCa::new().unwrap().server(&["a"]).unwrap())
    }

    fn key() -> RegisteredKey {
        key_of(b"k")
    }

    fn key_of(name: &[u8]) -> RegisteredKey {
        let ends = KeyEnds {
            own: "here",
            peer: "there",
        };
        RegisteredKey::from_secret(name, ends, Suite::Aes128Gcm, &[7; 32]).unwrap()
    }

    /// The text with which opening fails.
    #[track_caller]
    fn refused(builder: &Builder, accept: bool) -> String {
        let Err(error) = builder.endpoint_parts(accept) else {
            panic!("it was accepted")
        };
        assert!(matches!(error, OpenError::Options(_)), "{error}");
        error.to_string()
    }

    #[test]
    fn a_server_with_trust_is_refused_and_told_of_client_auth() {
        let error = refused(&server().trust(trust()), true);
        assert!(error.starts_with("caller: a server has no use for `trust`"));
        assert!(error.contains("say by `client_auth`"), "{error}");
        let auth = ClientAuth::Required(trust());
        server().client_auth(auth).endpoint_parts(true).unwrap();
    }

    #[test]
    fn a_client_with_client_auth_is_refused_and_told_of_trust() {
        let client = Builder::new().trust(trust());
        client.endpoint_parts(false).unwrap();
        let error = refused(&client.client_auth(ClientAuth::None), false);
        assert!(error.starts_with("caller: a client has no use for `client_auth`"));
        assert!(error.contains("say by `trust`"), "{error}");
    }

    #[test]
    fn a_server_may_have_an_identity_and_its_tls_options_beside_registered_keys() {
        let both = || server().registered_key(key()).registered_key(key_of(b"l"));
        let servers = [
            both(),
            both().client_auth(ClientAuth::Required(trust())),
            both().suites([Suite::Aes256Gcm]).groups([Group::X25519]),
        ];
        for server in servers {
            server.endpoint_parts(true).unwrap();
            assert!(refused(&server.trust(trust()), true).contains("no use for `trust`"));
        }
    }

    #[test]
    fn an_identity_beside_a_clients_registered_key_is_refused() {
        let error = refused(&server().registered_key(key()), false);
        assert!(error.contains("a client's registered key takes the place of TLS"));
    }

    #[test]
    fn options_of_tls_that_registered_keys_alone_would_ignore_are_refused_on_both_sides() {
        let with_key = || Builder::new().registered_key(key());
        let options = [
            with_key().trust(trust()),
            with_key().client_auth(ClientAuth::Required(trust())),
            with_key().server_name("a"),
            with_key().suites([Suite::Aes128Gcm]),
            with_key().groups([Group::X25519]),
        ];
        for (accept, text) in [
            (
                true,
                "a server without an `identity` has registered keys alone",
            ),
            (false, "a client's registered key takes the place of TLS"),
        ] {
            with_key().endpoint_parts(accept).unwrap();
            for builder in &options {
                assert!(refused(builder, accept).contains(text));
            }
        }
    }

    #[test]
    fn a_client_with_two_registered_keys_is_refused() {
        let both = Builder::new()
            .registered_key(key_of(b"k"))
            .registered_key(key_of(b"l"));
        both.endpoint_parts(true).unwrap();
        assert!(refused(&both, false).contains("one registered key"));
    }
}

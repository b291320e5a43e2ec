// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;

fn key(name: &[u8], suite: Suite) -> RegisteredKey {
    RegisteredKey::from_secret(name, suite, &[5; 32]).unwrap()
}

mod from_secret {
    use super::*;

    #[test]
    fn short_secrets_and_long_names_are_refused() {
        let short = RegisteredKey::from_secret(b"k", Suite::Aes128Gcm, &[0; 15]).unwrap_err();
        assert!(matches!(short, RegisteredKeyError::ShortSecret { len: 15 }));
        let long = RegisteredKey::from_secret(&[0; 33], Suite::Aes128Gcm, &[0; 16]).unwrap_err();
        assert!(matches!(long, RegisteredKeyError::LongName { len: 33 }));
        RegisteredKey::from_secret(&[0; 32], Suite::Aes128Gcm, &[0; 16]).unwrap();
    }
}

mod from_tls_keys {
    use super::*;

    #[test]
    fn ikm_is_client_key_and_iv_then_server_key_and_iv() {
        let (client, server) = (([1; 16], [2; 12]), ([3; 16], [4; 12]));
        let key = RegisteredKey::from_tls_keys(
            b"k",
            Suite::Aes128Gcm,
            (&client.0, &client.1),
            (&server.0, &server.1),
        );
        let wanted = [&[1; 16][..], &[2; 12], &[3; 16], &[4; 12]].concat();
        assert_eq!(key.unwrap().ikm(), wanted);
    }

    #[test]
    fn keys_of_another_suites_length_are_refused() {
        let (right, wrong) = ([0; 16], [0; 32]);
        for (client, server) in [(&right[..], &wrong[..]), (&wrong[..], &right[..])] {
            let error = RegisteredKey::from_tls_keys(
                b"k",
                Suite::Aes128Gcm,
                (client, &[0; 12]),
                (server, &[0; 12]),
            );
            let error = error.unwrap_err();
            assert!(
                matches!(error, RegisteredKeyError::KeyLength { len: 32, .. }),
                "{error}"
            );
        }
    }
}

mod server {
    use super::*;

    #[test]
    fn no_key_two_suites_and_one_name_twice_are_refused() {
        let none = RegisteredProvider::server(Vec::new()).unwrap_err();
        assert!(matches!(none, RegisteredKeyError::NoKey));
        let suites = vec![key(b"a", Suite::Aes128Gcm), key(b"b", Suite::Aes256Gcm)];
        let suites = RegisteredProvider::server(suites).unwrap_err();
        assert!(matches!(suites, RegisteredKeyError::TwoSuites { .. }));
        let twice = vec![key(b"a", Suite::Aes128Gcm), key(b"a", Suite::Aes128Gcm)];
        let twice = RegisteredProvider::server(twice).unwrap_err();
        assert_eq!(
            twice.to_string(),
            "two registered keys have the name \"a\"; give each its own"
        );
    }
}

mod both {
    use super::*;

    #[test]
    fn the_own_key_has_the_suite_of_the_others() {
        let others = || vec![key(b"a", Suite::Aes128Gcm)];
        let own = |suite| RegisteredKey::from_secret(b"b", suite, &[6; 32]).unwrap();
        RegisteredProvider::both(own(Suite::Aes128Gcm), others()).unwrap();
        let error = RegisteredProvider::both(own(Suite::Aes256Gcm), others()).unwrap_err();
        assert!(matches!(error, RegisteredKeyError::TwoSuites { .. }));
    }

    #[test]
    fn a_key_for_both_directions_is_refused_whatever_its_names() {
        for name in [b"a", b"b"] {
            let own = key(name, Suite::Aes128Gcm);
            let accepted = vec![key(b"a", Suite::Aes128Gcm)];
            let error = RegisteredProvider::both(own, accepted).unwrap_err();
            assert!(matches!(error, RegisteredKeyError::BothDirections { .. }));
            let text = error.to_string();
            assert!(text.contains("register a key for each direction"), "{text}");
        }
    }
}

mod debug {
    use super::*;

    #[test]
    fn the_secret_is_not_shown() {
        let shown = format!("{:?}", key(b"a", Suite::Aes128Gcm));
        assert_eq!(shown, "RegisteredKey { name: \"a\", suite: Aes128Gcm, .. }");
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use crate::external_psk::key::KeyEnds;

fn key(name: &[u8], suite: Suite) -> RegisteredKey {
    key_of("here", name, suite)
}

fn key_of(own: &str, name: &[u8], suite: Suite) -> RegisteredKey {
    let ends = KeyEnds { own, peer: "there" };
    RegisteredKey::from_secret(name, ends, suite, &[5; 32]).unwrap()
}

mod server {
    use super::*;

    // SMT [7.2-12]
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
            "caller: two registered keys have the name \"a\"; give each its own"
        );
    }

    // SMT [7.2-9], [7.2-10]
    #[test]
    fn two_own_identities_are_refused() {
        let keys = vec![
            key_of("here", b"a", Suite::Aes128Gcm),
            key_of("elsewhere", b"b", Suite::Aes128Gcm),
        ];
        let error = RegisteredProvider::server(keys).unwrap_err();
        assert_eq!(
            error.to_string(),
            "caller: an endpoint's registered keys call it \"here\" and \"elsewhere\"; give it one identity of its own in all"
        );
    }
}

mod both {
    use super::*;

    fn others() -> Vec<RegisteredKey> {
        vec![key(b"a", Suite::Aes128Gcm)]
    }

    #[test]
    fn the_own_key_has_the_suite_of_the_others() {
        RegisteredProvider::both(key(b"b", Suite::Aes128Gcm), others()).unwrap();
        let own = key(b"b", Suite::Aes256Gcm);
        let error = RegisteredProvider::both(own, others()).unwrap_err();
        assert!(matches!(error, RegisteredKeyError::TwoSuites { .. }));
    }

    // SMT [7.2-9]
    #[test]
    fn the_own_key_has_the_own_identity_of_the_others() {
        let own = key_of("elsewhere", b"b", Suite::Aes128Gcm);
        let error = RegisteredProvider::both(own, others()).unwrap_err();
        assert!(matches!(error, RegisteredKeyError::TwoIdentities { .. }));
    }

    #[test]
    fn no_key_to_answer_to_is_refused() {
        let error = RegisteredProvider::both(key(b"b", Suite::Aes128Gcm), Vec::new()).unwrap_err();
        assert!(matches!(error, RegisteredKeyError::NoKey));
    }
}

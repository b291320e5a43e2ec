// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;

const ENDS: KeyEnds<'static> = KeyEnds { own: "here", peer: "there" };

/// The same from the other end.
const OTHER_END: KeyEnds<'static> = KeyEnds { own: "there", peer: "here" };

/// Whether the two would have a session with the first as its client.
fn agree(client: &RegisteredKey, server: &RegisteredKey) -> bool {
    let secrets = |key: &RegisteredKey, side| key.imported(side).session_secrets(&AwsLc, &[1; 32]);
    secrets(client, Side::Client) == secrets(server, Side::Server)
}

mod from_secret {
    use super::*;

    fn of(ends: KeyEnds<'_>) -> Result<RegisteredKey, RegisteredKeyError> {
        RegisteredKey::from_secret(b"k", ends, Suite::Aes128Gcm, &[5; 32])
    }

    #[test]
    fn short_secrets_and_long_names_are_refused() {
        let of = |name: &[u8], secret: &[u8]| {
            RegisteredKey::from_secret(name, ENDS, Suite::Aes128Gcm, secret)
        };
        let short = of(b"k", &[0; 15]).unwrap_err();
        assert!(matches!(short, RegisteredKeyError::ShortSecret { len: 15 }));
        let long = of(&[0; 33], &[0; 16]).unwrap_err();
        assert!(matches!(long, RegisteredKeyError::LongName { len: 33 }));
        of(&[0; 32], &[0; 16]).unwrap();
    }

    #[test]
    fn empty_and_long_identities_are_refused_at_either_end() {
        let (longest, longer) = ("x".repeat(255), "x".repeat(256));
        for (identity, len) in [("", 0), (&longer[..], 256)] {
            for ends in [KeyEnds { own: identity, ..ENDS }, KeyEnds { peer: identity, ..ENDS }] {
                let error = of(ends).unwrap_err();
                assert!(
                    matches!(error, RegisteredKeyError::IdentityLength { len: told } if told == len),
                    "{error}"
                );
            }
        }
        let ends = KeyEnds { own: &longest, ..ENDS };
        of(ends).unwrap();
    }

    // SMT [7.2-10]
    #[test]
    fn an_end_that_is_its_own_peer_is_refused() {
        let ends = KeyEnds { own: "here", peer: "here" };
        assert_eq!(
            of(ends).unwrap_err().to_string(),
            "caller: a registered key joins \"here\" with itself; give its two ends different identities"
        );
    }

    #[test]
    fn either_end_can_be_the_client_and_each_direction_has_keys_of_its_own() {
        let (here, there) = (of(ENDS).unwrap(), of(OTHER_END).unwrap());
        assert!(agree(&here, &there) && agree(&there, &here));
        let secrets = |side| here.imported(side).session_secrets(&AwsLc, &[1; 32]);
        assert_ne!(secrets(Side::Client), secrets(Side::Server));
    }

    #[test]
    fn the_same_secret_under_another_name_is_another_key() {
        let named = |name, ends| RegisteredKey::from_secret(name, ends, Suite::Aes128Gcm, &[5; 32]);
        let (here, there) = (named(b"k", ENDS).unwrap(), named(b"l", OTHER_END).unwrap());
        assert!(!agree(&here, &there) && !agree(&there, &here));
    }

    #[test]
    fn no_end_agrees_with_itself() {
        for ends in [ENDS, OTHER_END] {
            assert!(!agree(&of(ends).unwrap(), &of(ends).unwrap()));
        }
    }
}

mod from_tls_keys {
    use super::*;

    const fn traffic<'a>(key: &'a [u8], iv: &'a [u8; 12]) -> TlsTrafficKey<'a> {
        TlsTrafficKey { key, iv }
    }

    #[test]
    fn secret_is_client_key_and_iv_then_server_key_and_iv() {
        let key = RegisteredKey::from_tls_keys(
            b"k",
            ENDS,
            Suite::Aes128Gcm,
            traffic(&[1; 16], &[2; 12]),
            traffic(&[3; 16], &[4; 12]),
        );
        let secret = [&[1; 16][..], &[2; 12], &[3; 16], &[4; 12]].concat();
        let same = RegisteredKey::from_secret(b"k", OTHER_END, Suite::Aes128Gcm, &secret);
        assert!(agree(&key.unwrap(), &same.unwrap()));
    }

    #[test]
    fn keys_of_another_suites_length_are_refused() {
        let (right, wrong) = ([0; 16], [0; 32]);
        for (client, server) in [(&right[..], &wrong[..]), (&wrong[..], &right[..])] {
            let error = RegisteredKey::from_tls_keys(
                b"k",
                ENDS,
                Suite::Aes128Gcm,
                traffic(client, &[0; 12]),
                traffic(server, &[0; 12]),
            );
            let error = error.unwrap_err();
            assert!(matches!(error, RegisteredKeyError::KeyLength { len: 32, .. }), "{error}");
        }
    }
}

mod debug {
    use super::*;

    #[test]
    fn the_secret_is_not_shown() {
        let key = RegisteredKey::from_secret(b"a", ENDS, Suite::Aes128Gcm, &[5; 32]).unwrap();
        assert_eq!(
            format!("{key:?}"),
            "RegisteredKey { name: \"a\", own: \"here\", peer: \"there\", suite: Aes128Gcm, .. }"
        );
    }
}

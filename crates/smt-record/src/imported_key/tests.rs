// SPDX-License-Identifier: Apache-2.0 OR MIT
use alloc::format;

use super::*;
use crate::aws_lc::AwsLc;

const IDENTITY: ImportedIdentity<'static> =
    ImportedIdentity { key_name: b"rack", client: b"web", server: b"store" };

fn of(identity: ImportedIdentity<'_>) -> SessionSecrets {
    ImportedKey::new(&AwsLc, Suite::Aes128Gcm, b"secret", &identity)
        .session_secrets(&AwsLc, &[1; 32])
}

/// All four secrets differ.
#[track_caller]
fn assert_nothing_in_common(one: &SessionSecrets, other: &SessionSecrets) {
    for (one, other) in [(&one.client, &other.client), (&one.server, &other.server)] {
        assert_ne!(one.data, other.data);
        assert_ne!(one.control, other.control);
    }
}

mod encode {
    use super::*;

    // SMT [7.2-3], [7.2-4]
    #[test]
    fn is_the_structure_of_rfc_9258() {
        let sha_256 = b"\x00\x04rack\x00\x0a\x03web\x05store\x53\x01\x00\x01";
        for suite in [Suite::Aes128Gcm, Suite::ChaCha20Poly1305] {
            assert_eq!(IDENTITY.encode(suite), sha_256);
        }
        let sha_384 = b"\x00\x04rack\x00\x0a\x03web\x05store\x53\x01\x00\x02";
        assert_eq!(IDENTITY.encode(Suite::Aes256Gcm), sha_384);
    }

    #[test]
    fn takes_the_longest_identities() {
        let identity = ImportedIdentity { client: &[1; 255], server: &[2; 255], ..IDENTITY };
        let encoded = identity.encode(Suite::Aes128Gcm);
        assert_eq!(encoded[6..8], 512_u16.to_be_bytes());
        assert_eq!(encoded.len(), 6 + 2 + 512 + 4);
    }
}

mod session_secrets {
    use super::*;

    #[test]
    fn another_name_client_or_server_gives_other_secrets() {
        let others = [
            ImportedIdentity { key_name: b"rock", ..IDENTITY },
            ImportedIdentity { client: b"wed", ..IDENTITY },
            ImportedIdentity { server: b"stone", ..IDENTITY },
        ];
        assert_eq!(of(IDENTITY), of(IDENTITY));
        for other in others {
            assert_nothing_in_common(&of(IDENTITY), &of(other));
        }
    }

    #[test]
    fn client_and_server_exchanged_give_other_secrets() {
        let exchanged =
            ImportedIdentity { client: IDENTITY.server, server: IDENTITY.client, ..IDENTITY };
        assert_nothing_in_common(&of(IDENTITY), &of(exchanged));
    }

    #[test]
    fn a_byte_that_moves_to_the_neighbour_gives_other_secrets() {
        let moved = [
            ImportedIdentity { client: b"webs", server: b"tore", ..IDENTITY },
            ImportedIdentity { client: b"we", server: b"bstore", ..IDENTITY },
            ImportedIdentity { key_name: b"rackw", client: b"eb", ..IDENTITY },
            ImportedIdentity { key_name: b"rac", client: b"kweb", ..IDENTITY },
        ];
        for other in moved {
            assert_nothing_in_common(&of(IDENTITY), &of(other));
        }
    }

    #[test]
    fn another_hash_or_secret_gives_other_secrets() {
        let key = |secret: &[u8]| ImportedKey::new(&AwsLc, Suite::Aes128Gcm, secret, &IDENTITY);
        let secrets = key(b"key").session_secrets(&AwsLc, &[1; 32]);
        assert_eq!(secrets, key(b"key").session_secrets(&AwsLc, &[1; 32]));
        assert_nothing_in_common(&secrets, &key(b"key").session_secrets(&AwsLc, &[2; 32]));
        assert_nothing_in_common(&secrets, &key(b"kez").session_secrets(&AwsLc, &[1; 32]));
    }

    #[test]
    fn directions_and_purposes_differ() {
        let SessionSecrets { client, server, .. } = of(IDENTITY);
        let all = [client.data, client.control, server.data, server.control];
        for (i, one) in all.iter().enumerate() {
            for other in &all[i + 1..] {
                assert_ne!(one, other);
            }
        }
    }

    #[test]
    fn are_of_the_keys_suite_and_never_plaintext() {
        for suite in Suite::ALL {
            let key = ImportedKey::new(&AwsLc, suite, b"", &IDENTITY);
            let secrets = key.session_secrets(&AwsLc, &[0; 32]);
            assert_eq!((key.suite(), secrets.suite), (suite, suite));
            assert!(!secrets.is_plaintext());
        }
    }
}

mod debug {
    use super::*;

    #[test]
    fn shows_no_secret() {
        let key = ImportedKey::new(&AwsLc, Suite::Aes128Gcm, b"key", &IDENTITY);
        assert_eq!(format!("{key:?}"), "ImportedKey { suite: Aes128Gcm, .. }");
    }
}

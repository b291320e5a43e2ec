// SPDX-License-Identifier: Apache-2.0 OR MIT
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::*;

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
        .collect()
}

fn secrets() -> SessionSecrets {
    let secrets =
        SessionSecrets::from_exporter(Suite::Aes128Gcm, &[1; 32], |out, label, context| {
            expand_label(Suite::Aes128Gcm, &[2; 32], label, context, out);
            Ok::<(), core::convert::Infallible>(())
        });
    secrets.unwrap()
}

mod expand_label {
    use super::*;

    /// RFC 8448 §3: {server} derive write traffic keys for handshake data.
    #[test]
    fn gives_the_keys_of_rfc_8448() {
        let secret = hex("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38");
        let mut key = [0; 16];
        let mut iv = [0; 12];
        expand_label(Suite::Aes128Gcm, &secret, "key", b"", &mut key);
        expand_label(Suite::Aes128Gcm, &secret, "iv", b"", &mut iv);
        assert_eq!(key[..], hex("3fce516009c21727d0f2e4e86ee403bc"));
        assert_eq!(iv[..], hex("5d313eb2671276ee13000b30"));
    }
}

mod parameter_hash {
    use super::*;

    #[test]
    fn the_border_between_the_sides_counts() {
        assert_ne!(parameter_hash(b"ab", b"c"), parameter_hash(b"a", b"bc"));
        assert_ne!(parameter_hash(b"a", b"b"), parameter_hash(b"b", b"a"));
    }
}

mod from_exporter {
    use super::*;

    #[test]
    fn asks_for_the_four_labels_with_the_hash_as_context() {
        let mut asked = Vec::new();
        let secrets = SessionSecrets::from_exporter(
            Suite::Aes256Gcm,
            &[6; 32],
            |out, label, context| -> Result<(), ()> {
                assert_eq!((out.len(), context), (48, &[6_u8; 32][..]));
                out.fill(u8::try_from(asked.len()).unwrap());
                asked.push(label.to_string());
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(asked, SessionSecrets::EXPORTER_LABELS);
        assert_eq!(secrets.client.data.as_bytes(), [0; 48]);
        assert_eq!(secrets.client.control.as_bytes(), [1; 48]);
        assert_eq!(secrets.server.data.as_bytes(), [2; 48]);
        assert_eq!(secrets.server.control.as_bytes(), [3; 48]);
        assert!(!secrets.is_plaintext());
    }

    #[test]
    fn an_error_of_the_exporter_is_passed_on() {
        let secrets =
            SessionSecrets::from_exporter(Suite::Aes128Gcm, &[0; 32], |_, _, _| Err("too early"));
        assert_eq!(secrets, Err("too early"));
    }
}

mod next_epoch {
    use super::*;

    #[test]
    fn changes_both_secrets() {
        let epoch_0 = secrets().client;
        let epoch_1 = epoch_0.next_epoch(Suite::Aes128Gcm);
        assert_ne!(epoch_0.data, epoch_1.data);
        assert_ne!(epoch_0.control, epoch_1.control);
        assert_ne!(epoch_1.data, epoch_1.control);
    }
}

mod plaintext {
    use super::*;

    #[test]
    fn is_never_mistaken_for_keys() {
        assert!(SessionSecrets::plaintext().is_plaintext());
        let next = SessionSecrets::plaintext()
            .client
            .next_epoch(Suite::Aes128Gcm);
        assert!(next.data.is_plaintext() && next.control.is_plaintext());
        assert!(!secrets().is_plaintext());
    }

    #[test]
    fn one_secret_of_the_four_is_enough() {
        let with = |place: fn(&mut SessionSecrets) -> &mut Secret| {
            let mut secrets = secrets();
            *place(&mut secrets) = Secret::plaintext();
            secrets.is_plaintext()
        };
        assert!(with(|secrets| &mut secrets.client.data));
        assert!(with(|secrets| &mut secrets.client.control));
        assert!(with(|secrets| &mut secrets.server.data));
        assert!(with(|secrets| &mut secrets.server.control));
    }
}

mod debug {
    use super::*;

    #[test]
    fn shows_no_secret() {
        let text = format!("{:?}", secrets());
        assert!(text.contains("Secret(..)") && !text.contains('['), "{text}");
    }
}

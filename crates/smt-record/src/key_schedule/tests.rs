// SPDX-License-Identifier: Apache-2.0 OR MIT
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::*;
use crate::aws_lc::AwsLc;

fn secrets() -> SessionSecrets {
    let secrets =
        SessionSecrets::from_exporter(Suite::Aes128Gcm, &[1; 32], |out, label, context| {
            let prk = Prk::new(&AwsLc, Suite::Aes128Gcm, &[2; 32]);
            prk.expand_label(label, context, out);
            Ok::<(), core::convert::Infallible>(())
        });
    secrets.unwrap()
}

mod parameter_hash {
    use super::*;

    #[test]
    fn the_border_between_the_sides_counts() {
        let hash = |client, server| parameter_hash(&AwsLc, client, server);
        assert_ne!(hash(b"ab", b"c"), hash(b"a", b"bc"));
        assert_ne!(hash(b"a", b"b"), hash(b"b", b"a"));
    }
}

mod from_exporter {
    use super::*;

    #[test]
    fn asks_for_the_five_labels_with_the_hash_as_context() {
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
        let epoch_1 = epoch_0.next_epoch(&AwsLc, Suite::Aes128Gcm);
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
        let next = SessionSecrets::plaintext().client.next_epoch(&AwsLc, Suite::Aes128Gcm);
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

// SPDX-License-Identifier: Apache-2.0 OR MIT
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;

use super::*;
use crate::aws_lc::AwsLc;
use crate::key_schedule::SessionSecrets;

fn exporter(suite: Suite, byte: u8) -> Exporter {
    let secret = Secret::fill(suite, |out| {
        out.fill(byte);
        Ok::<(), Infallible>(())
    });
    Exporter::new(suite, secret.unwrap())
}

fn exported(exporter: &Exporter, label: &str, context: &[u8], len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    exporter.export(&AwsLc, label, context, &mut out).unwrap();
    out
}

mod export {
    use super::*;

    // SMT [7.4-1]
    #[test]
    fn equal_secrets_labels_and_contexts_give_equal_bytes() {
        for suite in Suite::ALL {
            let [one, other] = [exporter(suite, 7), exporter(suite, 7)];
            for len in [1, 32, 48, 49, EXPORT_LEN_MAX] {
                let bytes = exported(&one, "label", b"context", len);
                assert_eq!(bytes, exported(&other, "label", b"context", len));
            }
        }
    }

    #[test]
    fn secret_suite_label_context_and_length_each_change_all_bytes() {
        let of = |suite, byte, label, context: &[u8], len| {
            exported(&exporter(suite, byte), label, context, len)[..16].to_vec()
        };
        let suite = Suite::Aes128Gcm;
        let all = [
            of(suite, 7, "label", b"context", 32),
            of(suite, 8, "label", b"context", 32),
            of(Suite::Aes256Gcm, 7, "label", b"context", 32),
            of(suite, 7, "labe", b"context", 32),
            of(suite, 7, "labe", b"lcontext", 32),
            of(suite, 7, "label", b"contex", 32),
            of(suite, 7, "label", b"", 32),
            of(suite, 7, "label", b"context", 33),
            // The label of the second step.
            of(suite, 7, "exporter", b"context", 32),
        ];
        for (place, bytes) in all.iter().enumerate() {
            assert!(!all[..place].contains(bytes), "{place}");
        }
    }

    // SMT [7.4-3]
    #[test]
    fn labels_and_lengths_have_bounds_and_contexts_have_none() {
        let exporter = exporter(Suite::Aes256Gcm, 7);
        let export = |label: &str, len| {
            let mut out = vec![9; len];
            let result = exporter.export(&AwsLc, label, &[1; 1_000_000], &mut out);
            assert!(result.is_ok() || out.iter().all(|byte| *byte == 9));
            result
        };
        let label = |len| String::from_utf8(vec![b'l'; len]).unwrap();
        assert_eq!(export(&label(1), 1), Ok(()));
        assert_eq!(export(&label(249), 8_160), Ok(()));
        for len in [0, 250] {
            assert_eq!(export(&label(len), 32), Err(ExportError::Label { len }));
        }
        for len in [0, 8_161] {
            assert_eq!(export("label", len), Err(ExportError::Length { len }));
        }
    }

    // SMT [7.4-6]
    #[test]
    fn a_session_of_the_plaintext_version_has_nothing_to_export() {
        let exporter = SessionSecrets::plaintext().exporter;
        let result = exporter.export(&AwsLc, "label", b"", &mut [0; 32]);
        assert_eq!(result, Err(ExportError::Plaintext));
    }
}

mod debug {
    use super::*;

    #[test]
    fn shows_no_byte() {
        let shown = format!("{:?}", exporter(Suite::Aes128Gcm, 0xA5));
        assert_eq!(shown, "Exporter { suite: Aes128Gcm, .. }");
    }
}

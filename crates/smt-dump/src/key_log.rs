// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The secrets of a key log (SPEC §13), as keys.
//!
//! Lines of other labels, as a TLS library writes them into the same file, are passed over.

use std::collections::HashMap;

use smt_record::{Aead, AeadProvider, AwsLc, Prk, Purpose, Suite};
use smt_wire::SessionIndex;
use zeroize::Zeroizing;

/// All keys of a log so far, by the index in the packets that they protect.
#[derive(Default)]
pub struct Keys {
    by_index: HashMap<SessionIndex, Vec<Key>>,
    /// Lines that were read.
    lines: usize,
}

/// Why a file gives no keys. Nothing of it is quoted: it has secrets.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum KeyLogError {
    /// Not UTF-8.
    #[error("this is no key log: it is not text")]
    NoText,
    /// Only lines of other labels.
    #[error("this is no key log: it has no line that begins with {LABEL}")]
    NoSecret,
    /// A line with the label, counted from 1, that has not six words as SPEC §13 wants them.
    #[error("line {0} is no key log line")]
    Line(usize),
}

struct Key {
    purpose: Purpose,
    epoch: u32,
    aead: Box<dyn Aead>,
}

impl Keys {
    /// Reads what is in a file.
    ///
    /// # Errors
    /// It is no text, has no secret, or one that is not as it should be.
    pub fn parse(log: &[u8]) -> Result<Self, KeyLogError> {
        let mut keys = Self::default();
        keys.read_lines(log)?;
        if keys.by_index.is_empty() {
            return Err(KeyLogError::NoSecret);
        }
        Ok(keys)
    }

    /// Reads the lines of a log that is still written, behind those that were read before. There
    /// may be no secret in them. Gives how many bytes were read: the last line stays for the next
    /// time if it has no end yet, unless it is whole without one.
    ///
    /// # Errors
    /// They are no text, or a secret is not as it should be. Those before it were read.
    pub fn read_on(&mut self, lines: &[u8]) -> Result<usize, KeyLogError> {
        let ended = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let (ended, rest) = lines.split_at(ended);
        self.read_lines(ended)?;
        let is_whole = std::str::from_utf8(rest).is_ok_and(|line| self.read_line(line) == Ok(true));
        Ok(ended.len() + if is_whole { rest.len() } else { 0 })
    }

    fn read_lines(&mut self, lines: &[u8]) -> Result<(), KeyLogError> {
        let text = std::str::from_utf8(lines).map_err(|_| KeyLogError::NoText)?;
        for line in text.lines() {
            self.lines += 1;
            self.read_line(line)?;
        }
        Ok(())
    }

    /// Whether the line has a secret.
    fn read_line(&mut self, line: &str) -> Result<bool, KeyLogError> {
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some(LABEL) {
            return Ok(false);
        }
        let words: Vec<&str> = words.collect();
        let (index, key) = entry(&words).ok_or(KeyLogError::Line(self.lines))?;
        self.by_index.entry(index).or_default().push(key);
        Ok(true)
    }

    /// Whether there is any key for packets with this index.
    pub(crate) fn has(&self, index: SessionIndex) -> bool {
        self.by_index.contains_key(&index)
    }

    /// Keys that may have sealed a packet: those of its index and of epochs with these low 8 bits,
    /// newest first.
    pub(crate) fn candidates(
        &self,
        index: SessionIndex,
        purpose: Purpose,
        epoch: u8,
    ) -> impl Iterator<Item = &dyn Aead> {
        let all = self.by_index.get(&index).into_iter().flatten().rev();
        all.filter(move |key| key.purpose == purpose && key.epoch as u8 == epoch)
            .map(|key| &*key.aead)
    }
}

/// The words behind the label: index, side, purpose, epoch, suite, secret.
fn entry(words: &[&str]) -> Option<(SessionIndex, Key)> {
    let &[index, "client" | "server", purpose, epoch, suite, secret] = words else {
        return None;
    };
    let suite = Suite::from_code(u16::from_str_radix(suite, 16).ok()?)?;
    let secret = bytes(secret).filter(|secret| secret.len() == suite.hash_len())?;
    let mut key = Zeroizing::new([0; 32]);
    let key = &mut key[..suite.key_len()];
    let mut iv = [0; 12];
    let prk = Prk::new(&AwsLc, suite, &secret);
    prk.expand_label("key", b"", key);
    prk.expand_label("iv", b"", &mut iv);
    let purpose = match purpose {
        "data" => Purpose::Data,
        "control" => Purpose::Control,
        _ => return None,
    };
    let key = Key { purpose, epoch: epoch.parse().ok()?, aead: AwsLc.aead(suite, key, iv).ok()? };
    Some((SessionIndex(u64::from_str_radix(index, 16).ok()?), key))
}

fn bytes(hex: &str) -> Option<Zeroizing<Vec<u8>>> {
    if !hex.len().is_multiple_of(2) || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let byte = |place: usize| u8::from_str_radix(&hex[place..place + 2], 16).ok();
    let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
    bytes.map(Zeroizing::new)
}

const LABEL: &str = "SMT_SECRET";

#[cfg(test)]
mod tests {
    use super::*;

    fn line(rest: &str) -> String {
        format!("SMT_SECRET 000000010000000f {rest}")
    }

    mod parse {
        use super::*;

        #[test]
        fn a_line_gives_a_key_for_its_index_purpose_and_epoch() {
            let text = format!(
                "# comment\nCLIENT_RANDOM 00 11\n{}\n{}\n",
                line(&format!("server control 257 1303 {}", "ab".repeat(32))),
                line(&format!("server data 0 1302 {}", "cd".repeat(48))),
            );
            let keys = Keys::parse(text.as_bytes()).unwrap();
            let index = SessionIndex(0x0000_0001_0000_000F);
            let count = |purpose, epoch| keys.candidates(index, purpose, epoch).count();
            assert_eq!((count(Purpose::Control, 1), count(Purpose::Control, 0)), (1, 0));
            assert_eq!((count(Purpose::Data, 0), count(Purpose::Data, 1)), (1, 0));
            assert!(keys.has(index) && !keys.has(SessionIndex(1)));
        }

        #[test]
        fn a_broken_line_is_named() {
            for rest in [
                "server data 0 1301",
                "server data 0 1301 abc",
                "server data 0 1301 zz",
                "nobody data 0 1301 00",
                "server data 0 1399 00",
                &format!("server data -1 1301 {}", "00".repeat(32)),
                &format!("server data 0 1301 {}", "00".repeat(48)),
                &format!("server data 0 1301 {} more", "00".repeat(32)),
                "server data 0 1301 \u{e4}\u{f6}",
            ] {
                let text = format!("\n{}", line(rest));
                let wrong = Keys::parse(text.as_bytes()).err();
                assert_eq!(wrong, Some(KeyLogError::Line(2)), "{rest}");
            }
        }

        #[test]
        fn a_last_line_that_breaks_off_is_no_key_log_line() {
            let whole = line(&format!("server data 0 1301 {}", "ab".repeat(32)));
            assert!(Keys::parse(whole.as_bytes()).is_ok());
            let text = format!("{whole}\n{}", &whole[..40]);
            assert_eq!(Keys::parse(text.as_bytes()).err(), Some(KeyLogError::Line(2)));
        }

        #[test]
        fn a_file_without_secrets_is_no_key_log() {
            for text in ["", "hello\n", "CLIENT_RANDOM 00 11\n"] {
                let wrong = Keys::parse(text.as_bytes()).err();
                assert_eq!(wrong, Some(KeyLogError::NoSecret));
            }
            assert_eq!(Keys::parse(&[0xFF]).err(), Some(KeyLogError::NoText));
        }
    }
    mod read_on {
        use super::*;

        #[test]
        fn a_line_that_is_not_whole_waits_for_its_end() {
            let secret = |index: u8, end: &str| {
                let secret = "ab".repeat(32);
                format!("SMT_SECRET {index} server data 0 1301 {secret}{end}")
            };
            let (one, two) = (secret(1, "\n"), secret(2, ""));
            let log = format!("# comment\n{one}{two}");
            let mut keys = Keys::default();
            let (mut read, mut seen) = (0, Vec::new());
            for end in 0..=log.len() {
                read += keys.read_on(&log.as_bytes()[read..end]).unwrap();
                seen.push((keys.has(SessionIndex(1)), keys.has(SessionIndex(2))));
            }
            assert_eq!(read, log.len());
            assert_eq!(seen.last(), Some(&(true, true)));
            // The end of the line itself is not waited for.
            assert!(seen[log.len() - two.len() - 1].0);
            assert_eq!(keys.read_on(b"\n"), Ok(1));
            assert_eq!(keys.read_on(b"SMT_SECRET 1\n"), Err(KeyLogError::Line(4)));
        }
    }
}

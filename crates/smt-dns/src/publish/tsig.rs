// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key of dynamic updates (TSIG, RFC 8945): its file, and what it signs and verifies.
//!
//! Only hmac-sha256, which every name server has.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use aws_lc_rs::hmac;
use data_encoding::BASE64;
use hickory_proto::op::Message;
use hickory_proto::rr::Name;
use hickory_proto::rr::rdata::tsig::{
    TSIG, TsigAlgorithm, make_tsig_record, message_tbs, signed_bitmessage_to_buf,
};
use zeroize::Zeroizing;

use crate::error::PublishError;
use crate::limits::KEY_FILE_LEN_MAX;

/// A key and its name.
pub struct TsigKey {
    name: Name,
    key: Box<hmac::Key>,
}

impl TsigKey {
    /// Reads a key from a file: the clause that `tsig-keygen` prints, or a line
    /// `hmac-sha256:NAME:BASE64`, as `keymgr -t` has it in its comment.
    ///
    /// # Errors
    /// The file cannot be read, or has no key for hmac-sha256.
    pub fn read(path: &Path) -> Result<Self, PublishError> {
        let error = |why: String| PublishError::Key { path: path.to_owned(), why };
        // The buffer never grows, and leaves no copy of the key behind.
        let mut text = Zeroizing::new(Vec::with_capacity(KEY_FILE_LEN_MAX as usize + 1));
        let file = File::open(path).map_err(|wrong| error(wrong.to_string()))?;
        let read = file.take(KEY_FILE_LEN_MAX + 1).read_to_end(&mut text);
        read.map_err(|wrong| error(wrong.to_string()))?;
        if text.len() as u64 > KEY_FILE_LEN_MAX {
            return Err(error("it is longer than any key's file".to_owned()));
        }
        let text = std::str::from_utf8(&text).map_err(|_| error("it is no text".to_owned()))?;
        Self::parse(text).map_err(|why| error(why.to_owned()))
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let line = text.lines().find_map(|line| {
            let mut parts = line.trim_start_matches(['#', ' ']).trim().splitn(3, ':');
            let (algorithm, name, key) = (parts.next()?, parts.next()?, parts.next()?);
            algorithm.starts_with("hmac-").then_some((algorithm, name, key))
        });
        let is_between = |letter: char| letter.is_whitespace() || "{};\"".contains(letter);
        let words = || text.split(is_between).filter(|word| !word.is_empty());
        let behind = |what: &str| words().skip_while(|word| *word != what).nth(1);
        let clause = || Some((behind("algorithm")?, behind("key")?, behind("secret")?));
        let (algorithm, name, key) = line
            .or_else(clause)
            .ok_or("give what tsig-keygen prints, or hmac-sha256:NAME:BASE64")?;
        if !algorithm.eq_ignore_ascii_case("hmac-sha256") {
            return Err("the key is for another algorithm than hmac-sha256");
        }
        let mut name = Name::from_ascii(name).map_err(|_| "the key's name is no DNS name")?;
        name.set_fqdn(true);
        let key = BASE64.decode(key.as_bytes()).map(Zeroizing::new);
        let key = key.map_err(|_| "the key is no base64")?;
        if key.len() < KEY_LEN_MIN {
            return Err("the key has less than 16 bytes");
        }
        Ok(Self {
            name: name.to_lowercase(),
            key: Box::new(hmac::Key::new(hmac::HMAC_SHA256, &key)),
        })
    }

    /// Signs a request at `now`, and gives what its answer is verified with.
    ///
    /// # Errors
    /// In words: the message cannot be written.
    pub(super) fn sign(&self, message: &mut Message, now: u64) -> Result<Vec<u8>, String> {
        let tsig = TSIG::new(
            TsigAlgorithm::HmacSha256,
            now,
            FUDGE,
            Vec::new(),
            message.id,
            None,
            Vec::new(),
        );
        let signed = message_tbs(&*message, &tsig, &self.name).map_err(|e| e.to_string())?;
        let mac = hmac::sign(&self.key, &signed).as_ref().to_vec();
        let record = make_tsig_record(self.name.clone(), tsig.set_mac(mac.clone()));
        message.set_signature(Box::new(record));
        Ok(mac)
    }

    /// Verifies the answer to the request of this MAC.
    ///
    /// # Errors
    /// In words: it is not signed, by another key, wrongly, or at another time.
    pub(super) fn verify(&self, answer: &[u8], request: &[u8], now: u64) -> Result<(), String> {
        let parts = signed_bitmessage_to_buf(answer, Some(request), true);
        let (signed, record) = parts.map_err(|_| "its answer is not signed".to_owned())?;
        let tsig = &record.data;
        if let Some(error) = tsig.error {
            return Err(format!("{error:?}: are key and clocks the same?"));
        }
        if record.name.to_lowercase() != self.name || tsig.algorithm != TsigAlgorithm::HmacSha256 {
            return Err("its answer is signed by another key".to_owned());
        }
        hmac::verify(&self.key, &signed, &tsig.mac)
            .map_err(|_| "its answer is signed wrongly".to_owned())?;
        match tsig.time.abs_diff(now) <= u64::from(FUDGE) {
            true => Ok(()),
            false => Err("its answer is of another time: are the clocks right?".to_owned()),
        }
    }
}

/// No byte of the key.
impl std::fmt::Debug for TsigKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TsigKey").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Seconds that the clocks may differ, as RFC 8945 recommends.
const FUDGE: u16 = 300;
/// RFC 8945 §8: no shorter than half of the hash.
const KEY_LEN_MIN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::op::{MessageType, OpCode};

    const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

    fn key() -> TsigKey {
        TsigKey::parse(&format!("hmac-sha256:smt-key:{KEY}")).unwrap()
    }

    #[test]
    fn the_files_of_bind_and_of_knot_are_read() {
        for text in [
            format!("key \"smt-key\" {{\n\talgorithm hmac-sha256;\n\tsecret \"{KEY}\";\n}};\n"),
            format!("# hmac-sha256:smt-key:{KEY}\nkey:\n  - id: smt-key\n"),
            format!("hmac-sha256:SMT-key.:{KEY}\n"),
        ] {
            let read = TsigKey::parse(&text).unwrap();
            assert_eq!(read.name.to_string(), "smt-key.");
        }
    }

    #[test]
    fn files_without_a_key_are_told_and_never_shown() {
        for text in [
            String::new(),
            format!("hmac-sha512:smt-key:{KEY}"),
            "hmac-sha256:smt-key:AAAA".to_owned(),
            "hmac-sha256:smt-key:not base64".to_owned(),
            "key \"a\" { algorithm hmac-sha256; };".to_owned(),
        ] {
            let why = TsigKey::parse(&text).unwrap_err();
            assert!(!why.contains(KEY));
        }
        assert!(!format!("{:?}", key()).contains("0123"));
    }

    #[test]
    fn an_answer_is_verified_with_the_request_and_its_time() {
        let key = key();
        let mut request = Message::new(7, MessageType::Query, OpCode::Update);
        let mac = key.sign(&mut request, 1_000).unwrap();
        // The server's side: its MAC covers that of the request.
        let mut answer = Message::response(7, OpCode::Update);
        let (id, none) = (7, Vec::new());
        let tsig =
            |mac| TSIG::new(TsigAlgorithm::HmacSha256, 1_001, FUDGE, mac, id, None, none.clone());
        let mut signed = u16::try_from(mac.len()).unwrap().to_be_bytes().to_vec();
        signed.extend_from_slice(&mac);
        signed.extend(message_tbs(&answer, &tsig(Vec::new()), &key.name).unwrap());
        let of_answer = hmac::sign(&key.key, &signed).as_ref().to_vec();
        answer.set_signature(Box::new(make_tsig_record(key.name.clone(), tsig(of_answer))));
        let answer = answer.to_vec().unwrap();
        assert_eq!(key.verify(&answer, &mac, 1_002), Ok(()));
        for (what, answer, mac, now) in [
            ("another request", answer.clone(), vec![0; 32], 1_002),
            ("another time", answer.clone(), mac.clone(), 9_000),
            (
                "no signature",
                Message::response(7, OpCode::Update).to_vec().unwrap(),
                mac.clone(),
                1_002,
            ),
        ] {
            assert!(key.verify(&answer, &mac, now).is_err(), "{what}");
        }
        let other = TsigKey::parse(&format!("hmac-sha256:other:{KEY}")).unwrap();
        assert!(other.verify(&answer, &mac, 1_002).is_err());
    }
}

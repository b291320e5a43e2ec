// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A few keys in etcd, by JSON over HTTP (etcd's gRPC gateway, version 3).
//!
//! Nothing that comes from etcd or its network is believed here: what matters has signatures. A
//! network that lies can keep keys back, as one that is down.

use std::time::Duration;

use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::Agent;

use crate::chain::config::EtcdConfig;

/// For one request and its answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of an answer at most. The longest that is of use, a configuration of nine nodes, is far
/// below them.
const ANSWER_MAX: u64 = 64 << 10;
/// Characters of an error's answer that are told.
const TOLD_MAX: usize = 200;

/// Why etcd does not do what is asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EtcdError {
    /// The endpoint does not answer.
    #[error("etcd at {endpoint} gives no answer: {error}")]
    Unreachable { endpoint: String, error: ureq::Error },
    /// Etcd answers with an error.
    #[error("etcd at {endpoint} refuses {path} with status {status}: {text}")]
    Refused { endpoint: String, path: &'static str, status: u16, text: String },
    /// Another server than etcd answers.
    #[error("{endpoint} gives {path} an answer that is none of etcd: {error}")]
    Malformed { endpoint: String, path: &'static str, error: serde_json::Error },
    /// The answer is longer than any that is of use.
    #[error("etcd at {endpoint} gives {path} an answer of more than {max} bytes", max = ANSWER_MAX)]
    TooLong { endpoint: String, path: &'static str },
}

/// The value of a key, and the revision in which it was written: 0 for a key that is not there.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Kept {
    pub(crate) value: Vec<u8>,
    pub(crate) revision: u64,
}

/// The keys of one group in etcd.
pub(crate) struct Etcd {
    agent: Agent,
    config: EtcdConfig,
    /// The endpoint that has answered last.
    at: usize,
}

#[derive(Deserialize)]
struct Outcome {
    #[serde(default)]
    succeeded: bool,
    #[serde(default)]
    responses: Vec<Response>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default, alias = "responseRange")]
    response_range: Option<Range>,
}

#[derive(Deserialize)]
struct Range {
    #[serde(default)]
    kvs: Vec<KeyValue>,
}

/// Numbers of 64 bits are strings in this JSON, and bytes are in base 64.
#[derive(Deserialize)]
struct KeyValue {
    #[serde(alias = "modRevision")]
    mod_revision: String,
    #[serde(default)]
    value: String,
}

impl Etcd {
    pub(crate) fn new(config: EtcdConfig) -> Self {
        let settings = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            // The way to etcd is in the configuration, and nowhere else.
            .proxy(None)
            .build();
        Self { agent: settings.into(), config, at: 0 }
    }

    /// Reads a key. A value that is too long comes as an empty one, with its revision: the key can
    /// be written over.
    ///
    /// Several keys in one answer would all be lost if the value of one is too long.
    pub(crate) fn read(&mut self, name: &str) -> Result<Kept, EtcdError> {
        let key = self.key(name);
        match self.range(&json!({ "key": key })) {
            Err(EtcdError::TooLong { .. }) => self.range(&json!({ "key": key, "keysOnly": true })),
            read => read,
        }
    }

    fn range(&mut self, asked: &Value) -> Result<Kept, EtcdError> {
        let outcome = self.transact(&json!({ "success": [{ "requestRange": asked }] }))?;
        Ok(outcome.responses.into_iter().next().map(Response::kept).unwrap_or_default())
    }

    /// Writes a key.
    pub(crate) fn write(&mut self, name: &str, value: &[u8]) -> Result<(), EtcdError> {
        let put = self.put(name, value);
        self.transact(&json!({ "success": [put] })).map(|_| ())
    }

    /// Writes a key that was last written in this revision. False if it was written since.
    pub(crate) fn swap(
        &mut self,
        name: &str,
        revision: u64,
        value: &[u8],
    ) -> Result<bool, EtcdError> {
        let (key, revision, put) = (self.key(name), revision.to_string(), self.put(name, value));
        let compare = json!({
            "result": "EQUAL", "target": "MOD", "key": key, "modRevision": revision
        });
        Ok(self.transact(&json!({ "compare": [compare], "success": [put] }))?.succeeded)
    }

    /// Deletes a key.
    pub(crate) fn delete(&mut self, name: &str) -> Result<(), EtcdError> {
        let delete = json!({ "requestDeleteRange": { "key": self.key(name) } });
        self.transact(&json!({ "success": [delete] })).map(|_| ())
    }

    fn key(&self, name: &str) -> String {
        BASE64.encode(format!("{}/{name}", self.config.prefix).as_bytes())
    }

    fn put(&self, name: &str, value: &[u8]) -> Value {
        json!({ "requestPut": { "key": self.key(name), "value": BASE64.encode(value) } })
    }

    /// Asks the endpoint that has answered last, and then the others.
    fn transact(&mut self, body: &Value) -> Result<Outcome, EtcdError> {
        let body = body.to_string();
        let mut outcome = self.ask("/v3/kv/txn", &body);
        for _ in 1..self.config.endpoints.len() {
            // Other members have the same long value.
            if matches!(outcome, Ok(_) | Err(EtcdError::TooLong { .. })) {
                break;
            }
            self.at = (self.at + 1) % self.config.endpoints.len();
            outcome = self.ask("/v3/kv/txn", &body);
        }
        outcome
    }

    fn ask(&self, path: &'static str, body: &str) -> Result<Outcome, EtcdError> {
        let endpoint = self.config.endpoints.get(self.at).cloned().unwrap_or_default();
        let url = format!("{endpoint}{path}");
        let asked = self.agent.post(&url).content_type("application/json").send(body);
        let read = asked.and_then(|mut it| {
            let text = it.body_mut().with_config().limit(ANSWER_MAX).read_to_string()?;
            Ok((it.status().as_u16(), text))
        });
        match read {
            Err(ureq::Error::BodyExceedsLimit(_)) => Err(EtcdError::TooLong { endpoint, path }),
            Err(error) => Err(EtcdError::Unreachable { endpoint, error }),
            Ok((200, text)) => serde_json::from_str(&text).map_err(|error| EtcdError::Malformed {
                endpoint,
                path,
                error,
            }),
            Ok((status, text)) => {
                let text = text.escape_debug().take(TOLD_MAX).collect();
                Err(EtcdError::Refused { endpoint, path, status, text })
            }
        }
    }
}

impl Response {
    /// The first key of an answer. One that is malformed counts as not there.
    fn kept(self) -> Kept {
        let first = self.response_range.and_then(|it| it.kvs.into_iter().next());
        let kept = first.and_then(|it| {
            let value = BASE64.decode(it.value.as_bytes()).ok()?;
            Some(Kept { value, revision: it.mod_revision.parse().ok()? })
        });
        kept.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::chain::fake_etcd::answer;

    #[test]
    fn a_key_that_is_there_comes_with_its_revision_and_another_is_empty() {
        let there = r#"{"response_range":{"kvs":[{"mod_revision":"7","value":"YWI="}]}}"#;
        let there = format!(r#"{{"succeeded":true,"responses":[{there}]}}"#);
        let other = r#"{"succeeded":true,"responses":[{"response_range":{}}]}"#;
        let (mut etcd, asked) = answer(&[("200 OK", there.as_str()), ("200 OK", other)]);
        let expected = Kept { value: b"ab".to_vec(), revision: 7 };
        assert_eq!(etcd.read("a").unwrap(), expected);
        assert_eq!(etcd.read("b").unwrap(), Kept::default());
        let asked = asked.join().unwrap();
        assert!(asked[0].starts_with("POST /v3/kv/txn"), "{asked:?}");
        // The key is p/a.
        assert!(asked[0].contains("\"cC9h\""), "{asked:?}");
    }

    #[test]
    fn a_key_that_was_written_meanwhile_is_not_swapped() {
        let (mut etcd, asked) = answer(&[("200 OK", "{\"header\":{}}")]);
        assert!(!etcd.swap("a", 3, b"x").unwrap());
        assert!(asked.join().unwrap()[0].contains("\"modRevision\":\"3\""));
    }

    #[test]
    fn an_answer_of_another_server_is_an_error_that_names_it() {
        for (status, body, expected) in [
            ("200 OK", "<html>", "an answer that is none of etcd"),
            ("200 OK", r#"{"responses":[{"response_range":{"kvs":3}}]}"#, "none of etcd"),
            ("503 Busy", "no\nleader", "status 503: no\\nleader"),
        ] {
            let (mut etcd, asked) = answer(&[(status, body)]);
            let text = etcd.read("a").err().unwrap().to_string();
            assert!(text.contains(expected) && text.contains("http://127.0.0.1:"), "{text}");
            asked.join().unwrap();
        }
    }

    #[test]
    fn a_value_that_is_too_long_is_empty_and_has_its_revision() {
        let long = format!("\"{}\"", "x".repeat(64 << 10));
        let kvs = r#"{"response_range":{"kvs":[{"key":"cC9h","mod_revision":"9"}]}}"#;
        let short = format!(r#"{{"succeeded":true,"responses":[{kvs}]}}"#);
        let (mut etcd, asked) = answer(&[("200 OK", long.as_str()), ("200 OK", short.as_str())]);
        assert_eq!(etcd.read("a").unwrap(), Kept { value: Vec::new(), revision: 9 });
        let asked = asked.join().unwrap();
        assert!(!asked[0].contains("keysOnly") && asked[1].contains("\"keysOnly\":true"));
    }
}

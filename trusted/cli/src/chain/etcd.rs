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
/// Bytes of an answer at most.
const ANSWER_MAX: u64 = 1 << 20;
/// Characters of an error's answer that are told.
const TOLD_MAX: usize = 200;

/// Why etcd does not do what is asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EtcdError {
    /// There is no answer.
    #[error("etcd at {endpoint} gives no answer: {error}")]
    Unreachable { endpoint: String, error: ureq::Error },
    /// It refuses.
    #[error("etcd at {endpoint} refuses {path} with status {status}: {text}")]
    Refused { endpoint: String, path: &'static str, status: u16, text: String },
    /// The answer is none.
    #[error("{endpoint} gives {path} an answer that is none of etcd: {error}")]
    Malformed { endpoint: String, path: &'static str, error: serde_json::Error },
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

    /// Reads keys, all in the same revision.
    pub(crate) fn read(&mut self, names: &[String]) -> Result<Vec<Kept>, EtcdError> {
        let ask = |name: &String| json!({ "requestRange": { "key": self.key(name) } });
        let asked: Vec<Value> = names.iter().map(ask).collect();
        let outcome = self.transact(&json!({ "success": asked }))?;
        let mut found = outcome.responses.into_iter().map(Response::kept);
        Ok(names.iter().map(|_| found.next().unwrap_or_default()).collect())
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
            if outcome.is_ok() {
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
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// An etcd that gives each request the same answer; returns what the first one asked.
    fn answer(status: &str, body: &str) -> (Etcd, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoints = vec![format!("http://{}", listener.local_addr().unwrap())];
        let length = body.len();
        let text = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
        let asked = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            // JSON of a transaction ends with the brace of its object.
            while asked.last() != Some(&b'}') {
                let mut bytes = [0; 4096];
                let count = stream.read(&mut bytes).unwrap();
                asked.extend_from_slice(&bytes[..count]);
            }
            stream.write_all(text.as_bytes()).unwrap();
            String::from_utf8(asked).unwrap()
        });
        let config = EtcdConfig { endpoints, prefix: "p".to_owned(), poll_ms: 10 };
        (Etcd::new(config), asked)
    }

    #[test]
    fn keys_that_are_there_come_with_their_revision_and_others_are_empty() {
        let kvs = r#"{"response_range":{"kvs":[{"mod_revision":"7","value":"YWI="}]}}"#;
        let body = format!(r#"{{"succeeded":true,"responses":[{kvs},{{"response_range":{{}}}}]}}"#);
        let (mut etcd, asked) = answer("200 OK", &body);
        let kept = etcd.read(&["a".to_owned(), "b".to_owned()]).unwrap();
        assert_eq!(kept, [Kept { value: b"ab".to_vec(), revision: 7 }, Kept::default()]);
        let asked = asked.join().unwrap();
        assert!(asked.starts_with("POST /v3/kv/txn"), "{asked}");
        // The key is p/a.
        assert!(asked.contains("\"cC9h\""), "{asked}");
    }

    #[test]
    fn a_key_that_was_written_meanwhile_is_not_swapped() {
        let (mut etcd, asked) = answer("200 OK", "{\"header\":{}}");
        assert!(!etcd.swap("a", 3, b"x").unwrap());
        assert!(asked.join().unwrap().contains("\"modRevision\":\"3\""));
    }

    #[test]
    fn an_answer_of_another_server_is_an_error_that_names_it() {
        for (status, body, expected) in [
            ("200 OK", "<html>", "an answer that is none of etcd"),
            ("200 OK", r#"{"responses":[{"response_range":{"kvs":3}}]}"#, "none of etcd"),
            ("503 Busy", "no\nleader", "status 503: no\\nleader"),
        ] {
            let (mut etcd, asked) = answer(status, body);
            let text = etcd.read(&["a".to_owned()]).err().unwrap().to_string();
            assert!(text.contains(expected) && text.contains("http://127.0.0.1:"), "{text}");
            asked.join().unwrap();
        }
    }

    #[test]
    fn an_answer_without_end_is_an_error() {
        let body = format!("\"{}\"", "x".repeat(2 << 20));
        let (mut etcd, asked) = answer("200 OK", &body);
        assert!(etcd.read(&["a".to_owned()]).is_err());
        // The listener may fail to write all of it.
        let _ = asked.join();
    }
}

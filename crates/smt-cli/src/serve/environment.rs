// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Environment variables that tell a command of --exec about its request.
//!
//! Their values come from the network: certificates, and metadata that any caller may send. No
//! value has a control character, names begin as they do here and are upper-case letters, digits
//! and underscores, and a variable of the server's own that begins so is not handed on.

use std::process::Command;

use smt::{Incoming, Metadata};

use super::caller::Caller;

/// The variables of one request.
#[derive(Debug, Default)]
pub(super) struct Environment(Vec<(String, String)>);

impl Environment {
    /// The variables of a message of this caller.
    pub(super) fn of(message: &Incoming, caller: &Caller) -> Self {
        let mut environment = Self::default();
        environment.add_caller(caller);
        let metadata = match message {
            Incoming::Request(request) => {
                if let Some(left) = request.time_left() {
                    environment.add("SMT_REQUEST_DEADLINE_MS", left.as_millis().to_string());
                }
                request.metadata()
            }
            Incoming::Message(message) => message.metadata(),
            _ => return environment,
        };
        environment.add_metadata(metadata);
        environment
    }

    fn add_caller(&mut self, caller: &Caller) {
        self.add("SMT_PEER_ADDRESS", caller.address.to_string());
        if let Some(subject) = &caller.subject {
            self.add("SMT_PEER_SUBJECT", subject.clone());
            for (name, values) in
                [("SMT_PEER_NAMES", &caller.names), ("SMT_PEER_URIS", &caller.uris)]
            {
                self.add(name, spaced(values));
            }
        }
        if let Some(key) = &caller.public_key {
            self.add("SMT_PEER_KEY_SHA256", key.clone());
        }
        if let Some(id) = &caller.spiffe_id {
            self.add("SMT_PEER_SPIFFE_ID", id.clone());
        }
    }

    /// The first of several values for one variable counts.
    fn add_metadata(&mut self, metadata: &Metadata) {
        for (name, value) in metadata.iter() {
            let name = format!("SMT_METADATA_{}", variable_name(name));
            let is_there = self.0.iter().any(|(other, _)| *other == name);
            match std::str::from_utf8(value) {
                Ok(value) if !is_there => self.add(&name, value.to_owned()),
                _ => {}
            }
        }
    }

    fn add(&mut self, name: &str, value: String) {
        if !value.contains(char::is_control) {
            self.0.push((name.to_owned(), value));
        }
    }

    /// Gives the variables to a command, and takes those away that would tell of another request.
    pub(super) fn give_to(&self, command: &mut Command) {
        let inherited = std::env::vars_os().map(|(name, _)| name);
        let is_ours = |name: &str| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        for name in inherited.filter(|name| name.to_str().is_some_and(is_ours)) {
            command.env_remove(name);
        }
        command.envs(self.0.iter().map(|(name, value)| (name, value)));
    }
}

/// Names with spaces between. A name with a space could pass for two.
fn spaced(names: &[String]) -> String {
    let names = names.iter().filter(|name| !name.contains(' '));
    let names: Vec<&str> = names.map(String::as_str).collect();
    names.join(" ")
}

/// The name of metadata, which has a-z, 0-9, '-', '_' and '.' alone, as part of a variable's.
fn variable_name(name: &str) -> String {
    let letter = |letter: char| match letter {
        '-' | '.' => '_',
        other => other.to_ascii_uppercase(),
    };
    name.chars().map(letter).collect()
}

/// The names of all of these variables begin with one of these.
const PREFIXES: [&str; 3] = ["SMT_PEER_", "SMT_REQUEST_", "SMT_METADATA_"];

#[cfg(test)]
mod tests {
    use super::*;

    fn of_metadata(entries: &[(&str, &[u8])]) -> Vec<(String, String)> {
        let mut metadata = Metadata::new();
        for (name, value) in entries {
            metadata.push(name, value).unwrap();
        }
        let mut environment = Environment::default();
        environment.add_metadata(&metadata);
        environment.0
    }

    #[test]
    fn metadata_becomes_variables_of_its_own_prefix() {
        let variables = of_metadata(&[("trace-id", b"a b=c"), ("path", b"/evil")]);
        let expected = [("SMT_METADATA_TRACE_ID", "a b=c"), ("SMT_METADATA_PATH", "/evil")];
        assert_eq!(variables, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn values_that_are_no_plain_text_are_left_out() {
        for value in [&b"a\0b"[..], b"a\nb", b"\x1b[31m", b"\xff", "\u{85}".as_bytes()] {
            assert_eq!(of_metadata(&[("key", value)]), [], "{value:?}");
        }
    }

    #[test]
    fn the_first_of_several_values_counts() {
        let variables = of_metadata(&[("a-b", b"1"), ("a.b", b"2"), ("a-b", b"3")]);
        assert_eq!(variables, [("SMT_METADATA_A_B".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn a_name_with_a_space_does_not_pass_for_two() {
        let mut environment = Environment::default();
        environment.add_caller(&Caller {
            address: ([127, 0, 0, 1], 7).into(),
            subject: Some("CN=alice".to_owned()),
            serial: None,
            public_key: None,
            names: ["a.example", "b admin", "::1"].map(str::to_owned).to_vec(),
            uris: ["spiffe://x/y", "urn:b admin"].map(str::to_owned).to_vec(),
            spiffe_id: Some("spiffe://x/y".to_owned()),
        });
        let expected = [
            ("SMT_PEER_ADDRESS", "127.0.0.1:7"),
            ("SMT_PEER_SUBJECT", "CN=alice"),
            ("SMT_PEER_NAMES", "a.example ::1"),
            ("SMT_PEER_URIS", "spiffe://x/y"),
            ("SMT_PEER_SPIFFE_ID", "spiffe://x/y"),
        ];
        assert_eq!(
            environment.0,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }
}

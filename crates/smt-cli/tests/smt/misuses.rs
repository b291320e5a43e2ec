// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Misuses of the command, as a user makes them: each has its exit code and a text that says what
//! is wrong and whose fault it is, writes nothing to standard output, leaves no file behind, and
//! harms no server.
//!
//! In a row, `DIR` is a directory with certificates and the files of [`Bench::new`], `CREDS` are
//! the options by which a server has its certificate, and `ECHO`, `SMALL`, `AUTH`, `FALSE` and
//! `FILES` are addresses of servers. At `CLOSED` is no socket, and at `SILENT` is one that never
//! answers.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::Path;

use crate::program::{Files, Serving, smt_with_input};

/// Words behind `smt`, the exit code, and a part of the text.
type Row = (&'static str, i32, &'static str);

#[test]
fn wrong_words_are_told_with_exit_code_2() {
    Bench::new().check(WORDS);
}

#[test]
fn wrong_values_are_told_with_exit_code_2() {
    Bench::new().check(VALUES);
}

#[test]
fn wrong_files_are_told_before_anything_is_sent() {
    Bench::new().check(FILES);
}

#[test]
fn wrong_files_of_other_subcommands_are_told() {
    Bench::new().check(KEYS);
    Bench::new().check(CAPTURES);
}

#[test]
fn wrong_servers_are_told_by_the_fate_of_the_request() {
    Bench::new().check(SERVERS);
}

const WORDS: &[Row] = &[
    ("", 2, "Usage: smt"),
    ("bake", 2, "unrecognized subcommand 'bake'"),
    ("cal ECHO", 2, "'call'"),
    ("call", 2, "<ADDRESS>"),
    ("call ECHO", 2, "--ca <FILE>"),
    ("call ECHO ECHO --ca DIR/ca.pem", 2, "unexpected argument"),
    ("call ECHO --ca DIR/ca.pem --pin DIR/ca.pem", 2, "cannot be used with"),
    ("call ECHO --ca DIR/ca.pem --cert DIR/alice.pem", 2, "--key <FILE>"),
    ("call ECHO --ca DIR/ca.pem --key DIR/alice.key", 2, "--cert <FILE>"),
    ("call ECHO --ca DIR/ca.pem --idempotent", 2, "--retry <N|TIME>"),
    ("call ECHO --ca DIR/ca.pem --one-way --out DIR/reply", 2, "cannot be used with '--out"),
    ("call ECHO --ca DIR/ca.pem --output x", 2, "unexpected argument '--output'"),
    ("serve --echo", 2, "--cert <FILE>"),
    ("serve CREDS", 2, "--echo"),
    ("serve CREDS --echo --dir DIR", 2, "cannot be used with"),
    ("serve CREDS --exec", 2, "value is required"),
    ("serve CREDS --exec cat", 2, "--client-ca"),
    ("serve CREDS --anyone --client-ca DIR/ca.pem --echo", 2, "cannot be used with"),
    ("dump", 2, "<FILE>"),
    ("dump DIR/text --out DIR/messages", 2, "--key-log <FILE>"),
    ("keys", 2, "Usage: smt keys"),
    ("keys ca", 2, "--out <DIR>"),
    ("keys server --ca DIR --out DIR", 2, "<NAME>"),
    ("keys client --ca DIR --out DIR", 2, "<NAME>"),
    ("keys server localhost --out DIR", 2, "--ca <DIR>"),
    ("keys show", 2, "<PATH>"),
    ("keys ca --out DIR/new --days 0", 2, "1 to 36525 days"),
    ("keys ca --out DIR/new --days 99999", 2, "1 to 36525 days"),
    ("doctor now", 2, "unexpected argument 'now'"),
    ("-q -v doctor", 2, "cannot be used with"),
    ("completions", 2, "<SHELL>"),
    ("perf", 2, "Usage: smt perf"),
    ("sim", 2, "Usage: smt sim"),
];

const VALUES: &[Row] = &[
    ("call ECHO --ca DIR/ca.pem --deadline 5", 2, "--deadline"),
    ("call ECHO --ca DIR/ca.pem --deadline 0s", 2, "--deadline"),
    ("call ECHO --ca DIR/ca.pem --deadline soon", 2, "'soon'"),
    ("call ECHO --ca DIR/ca.pem --retry often", 2, "give a number of attempts or a time"),
    ("call ECHO --ca DIR/ca.pem --retry 0s", 2, "--retry"),
    ("call ECHO --ca DIR/ca.pem --count 0", 2, "--count"),
    ("call ECHO --ca DIR/ca.pem --count many", 2, "'many'"),
    ("call ECHO --ca DIR/ca.pem --metadata =x", 2, "<NAME=VALUE>': \"\" is no name of metadata"),
    ("call ECHO --ca DIR/ca.pem --server-id x", 2, "<URI>': a SPIFFE ID begins with"),
    ("call ECHO --ca DIR/ca.pem --message-limit 2G", 2, "--message-limit"),
    ("call ECHO --ca DIR/ca.pem --message-limit 0", 2, "--message-limit"),
    ("call localhost:port --ca DIR/ca.pem", 2, "localhost:port"),
    (
        "call https://localhost --ca DIR/ca.pem",
        2,
        "https://localhost\": it is a URL or a path; give",
    ),
    ("call 127.0.0.1:99999 --ca DIR/ca.pem", 2, "the port \"99999\" is no number from 1 to 65535"),
    ("call localhost:99999 --ca DIR/ca.pem", 2, "give HOST, HOST:PORT or [IPV6]:PORT"),
    ("call :abc --ca DIR/ca.pem", 2, "there is no host before the port"),
    ("call [::1 --ca DIR/ca.pem", 2, "its brackets do not enclose an IPv6 address"),
    ("ticket show --dns localhost:99999", 2, "its port is no number from 1 to 65535"),
    ("call 127.0.0.1:0 --ca DIR/ca.pem", 2, "port 0 is for listening"),
    ("serve :17379 CREDS --echo", 2, ":17379"),
    ("serve 127.0.0.1:99999 CREDS --echo", 2, "127.0.0.1:99999"),
    ("serve 127.0.0.1:0 CREDS --echo --shards 0", 2, "--shards"),
    ("serve 127.0.0.1:0 CREDS --echo --shards 3", 2, "power of two"),
    ("serve 127.0.0.1:0 CREDS --echo --workers 0", 2, "1..=1024"),
    ("serve 127.0.0.1:0 CREDS --echo --message-limit much", 2, "'much'"),
    ("serve 127.0.0.1:0 CREDS --anyone --exec-timeout 0s --exec cat", 2, "--exec-timeout"),
    ("dump DIR/text --port 99999", 2, "99999"),
    ("keys ca --out DIR/new --days many", 2, "'many'"),
    ("keys ca --out DIR/new --days -1", 2, "--days"),
    ("completions tcsh", 2, "tcsh"),
    ("perf loopback --sizes 1X", 2, "1X"),
    ("perf loopback --sizes 8589934592G", 2, "--sizes"),
    ("sim swarm --time soon", 2, "soon"),
];

const FILES: &[Row] = &[
    ("serve 127.0.0.1:0 --cert DIR/missing --key DIR/localhost.key --echo", 1, "check the path"),
    ("serve 127.0.0.1:0 --cert DIR/localhost.pem --key DIR/alice.key --echo", 1, "belong"),
    (
        "serve 127.0.0.1:0 --cert DIR/localhost.key --key DIR/localhost.pem --echo",
        1,
        "holds 1 PRIVATE KEY",
    ),
    ("serve 127.0.0.1:0 --cert DIR --key DIR/localhost.key --echo", 1, "Is a directory"),
    ("serve 127.0.0.1:0 --cert DIR/localhost.pem --key DIR/empty --echo", 1, "no private key in"),
    ("serve 127.0.0.1:0 CREDS --echo --client-ca DIR/missing", 1, "missing"),
    ("serve 127.0.0.1:0 CREDS --echo --client-ca DIR/alice.key", 1, "no certificate in"),
    ("serve 127.0.0.1:0 CREDS --echo --client-pin DIR/alice.key", 1, "no certificate in"),
    ("serve 127.0.0.1:0 CREDS --dir DIR/missing", 1, "No such file"),
    ("serve 127.0.0.1:0 CREDS --dir DIR/text", 1, "Not a directory"),
    ("serve 127.0.0.1:0 CREDS --echo --state DIR/missing/state", 1, "No such file"),
    ("serve 127.0.0.1:0 CREDS --echo --key-log DIR/missing/log", 1, "No such file"),
    ("serve 127.0.0.1:0 CREDS --anyone --exec no-such-program", 1, "directories of PATH"),
    ("serve 127.0.0.1:0 CREDS --anyone --exec DIR/text", 1, "Permission denied"),
    ("serve ECHO CREDS --echo", 1, "already in use"),
    ("serve 192.0.2.1:0 CREDS --echo", 1, "choose another address"),
    ("serve no.such.host.invalid CREDS --echo", 1, "does not resolve"),
    ("call ECHO --ca DIR/missing", 1, "check the path"),
    ("call ECHO --ca DIR/text", 1, "no certificate in"),
    ("call ECHO --ca DIR/localhost.key", 1, "holds 1 PRIVATE KEY"),
    ("call ECHO --pin DIR/missing", 1, "cannot read"),
    ("call ECHO --ca DIR/ca.pem --cert DIR/alice.pem --key DIR/localhost.key", 1, "belong"),
    ("call ECHO --ca DIR/ca.pem --in DIR/missing", 1, "No such file"),
    ("call ECHO --ca DIR/ca.pem --in DIR", 1, "Is a directory"),
    ("call ECHO --ca DIR/ca.pem --out DIR/missing/reply", 1, "No such file"),
    ("call ECHO --ca DIR/ca.pem --out DIR", 1, "Is a directory"),
    ("call ECHO --ca DIR/ca.pem --key-log DIR/missing/log", 1, "No such file"),
];

const KEYS: &[Row] = &[
    ("keys ca --out DIR", 1, "--force"),
    ("keys server localhost --ca DIR --out DIR", 1, "--force"),
    ("keys ca --out DIR/text", 1, "text"),
    ("keys server db7 --ca DIR/missing --out DIR", 1, "ca.pem"),
    ("keys server db7 --ca DIR/none --out DIR", 1, "ca.pem"),
    ("keys server db7 --ca DIR --out DIR --days 9999", 1, "ask for at most that"),
    ("keys server db7:17379 --ca DIR --out DIR", 1, "is no DNS name"),
    ("keys server ../db7 --ca DIR --out DIR", 1, "is no DNS name"),
    ("keys show DIR/missing", 1, "No such file"),
    ("keys show DIR/text", 1, "no certificate in"),
    ("keys show DIR/localhost.key", 1, "holds 1 PRIVATE KEY"),
    ("man --out DIR/text", 1, "text"),
];

const CAPTURES: &[Row] = &[
    ("dump DIR/missing", 1, "No such file"),
    ("dump DIR", 1, "Is a directory"),
    ("dump DIR/text", 1, "neither pcap nor pcapng"),
    ("dump DIR/empty", 1, "empty"),
    ("dump DIR/text --key-log DIR/missing", 1, "missing"),
    ("sim run no-such-scenario", 1, "no-such-scenario"),
    ("sim swarm --seeds DIR/missing", 1, "missing"),
];

const SERVERS: &[Row] = &[
    ("call CLOSED --ca DIR/ca.pem", 6, "start it, or check address and port"),
    ("call CLOSED --ca DIR/ca.pem --retry 1", 6, "attempt 2"),
    ("call SILENT --ca DIR/ca.pem --deadline 200ms", 6, "check address, port and firewall"),
    ("call no.such.host.invalid --ca DIR/ca.pem", 6, "was not resolved"),
    ("call ECHO --ca DIR/other.pem", 3, "issuer"),
    ("call ECHO --pin DIR/alice.pem", 3, "certificate"),
    ("call ECHO --ca DIR/ca.pem --name db7", 3, "db7"),
    ("call ECHO --ca DIR/ca.pem --retry 9 --name db7", 3, "db7"),
    ("call AUTH --ca DIR/ca.pem", 3, "give it an identity"),
    (
        "call AUTH --ca DIR/ca.pem --cert DIR/localhost.pem --key DIR/localhost.key",
        3,
        "certificate",
    ),
    ("call SMALL --ca DIR/ca.pem --in DIR/2k", 3, "at most 1024"),
    ("call SMALL --ca DIR/ca.pem --in DIR/2k --one-way", 3, "at most 1024"),
    (
        "call ECHO --ca DIR/ca.pem --in DIR/2k --message-limit 1K",
        4,
        "larger than this side accepts",
    ),
    ("call ECHO --ca DIR/ca.pem --in DIR/2k --message-limit 1K --out DIR/reply", 4, "may have run"),
    ("call ECHO --ca DIR/ca.pem --in DIR/2k --out /dev/full", 7, "No space left"),
    ("call FALSE --ca DIR/ca.pem", 4, "may have run"),
    ("call FALSE --ca DIR/ca.pem --out DIR/reply", 4, "may have run"),
    ("call FALSE --ca DIR/ca.pem --retry 1 --idempotent", 4, "attempt 2"),
    ("call FILES --ca DIR/ca.pem --in DIR/names/missing", 5, "No such file"),
    ("call FILES --ca DIR/ca.pem --in DIR/names/outside", 5, "did not run"),
    ("call FILES --ca DIR/ca.pem --in DIR/names/directory", 5, "did not run"),
    ("call FILES --ca DIR/ca.pem --in DIR/names/line", 5, "did not run"),
    ("call FILES --ca DIR/ca.pem --in DIR/empty --out DIR/reply", 5, "did not run"),
];

/// Whether an error says whose fault it is. The parser of options has a form of its own for what is
/// always the caller's.
fn says_whose_fault(errors: &str) -> bool {
    let faults = ["caller: ", "peer: ", "environment: ", "limit: "];
    !errors.starts_with("smt: ") || faults.iter().any(|fault| errors.contains(fault))
}

/// A directory and servers for the rows of a table.
struct Bench {
    files: Files,
    servers: Vec<(&'static str, Serving)>,
    silent: UdpSocket,
}

impl Bench {
    fn new() -> Self {
        let (files, others) = (Files::new(), Files::new());
        files.write("other.pem", std::fs::read(others.path("ca.pem")).unwrap());
        files.write("text", "something else\n");
        files.write("empty", "");
        files.write("none/here", "");
        files.write("2k", [b'x'; 2_000]);
        files.write("served/file", "its content");
        files.write("served/directory/file", "");
        for (name, request) in [
            ("missing", "missing"),
            ("outside", "../localhost.key"),
            ("directory", "directory"),
            ("line", "file\n"),
        ] {
            files.write(&format!("names/{name}"), request);
        }
        let (authority, served) = (files.path("ca.pem"), files.path("served"));
        let start = |name, words: &[&str]| (name, Serving::start(&files, words));
        let servers = vec![
            start("ECHO", &["--echo"]),
            start("SMALL", &["--echo", "--message-limit", "1K"]),
            start("AUTH", &["--echo", "--client-ca", &authority]),
            start("FALSE", &["--anyone", "--exec", "false"]),
            start("FILES", &["--dir", &served]),
        ];
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        Self { files, servers, silent }
    }

    /// Does what the rows say, and tells all that is not as they say.
    #[track_caller]
    fn check(self, rows: &[Row]) {
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut wrong = Vec::new();
        for (words, code, text) in rows {
            let before = self.listing();
            let words: Vec<String> = self.expanded(words, &closed.to_string());
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let outcome = smt_with_input(&words, b"request");
            // Usage has several lines.
            let is_brief = *code == 2 || outcome.errors.lines().count() == 1;
            let is_told = outcome.status.code() == Some(*code) && outcome.errors.contains(text);
            let is_told = is_told && says_whose_fault(&outcome.errors);
            if !is_brief || !is_told || !outcome.output.is_empty() {
                wrong.push(format!("{words:?} wants {code} and {text:?}: {outcome:?}"));
            }
            if self.listing() != before {
                wrong.push(format!("{words:?} has left something: {:?}", self.listing()));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        self.assert_alive();
    }

    fn expanded(&self, words: &str, closed: &str) -> Vec<String> {
        let credentials = "--cert DIR/localhost.pem --key DIR/localhost.key";
        let words = words.replace("CREDS", credentials);
        let silent = self.silent.local_addr().unwrap().to_string();
        let mut addresses = vec![("CLOSED", closed), ("SILENT", &silent)];
        let serving = self.servers.iter();
        addresses.extend(serving.map(|(name, serving)| (*name, serving.address())));
        let expand = |word: &str| {
            let address = addresses.iter().find(|(name, _)| *name == word);
            let directory = self.files.path("");
            address.map_or_else(
                || word.replacen("DIR", directory.trim_end_matches('/'), 1),
                |(_, address)| (*address).to_owned(),
            )
        };
        words.split_whitespace().map(expand).collect()
    }

    /// All files with their lengths.
    fn listing(&self) -> BTreeMap<String, u64> {
        let mut found = BTreeMap::new();
        let mut directories = vec![self.files.path("")];
        while let Some(directory) = directories.pop() {
            for entry in Path::new(&directory).read_dir().unwrap() {
                let entry = entry.unwrap();
                let path = entry.path().to_str().unwrap().to_owned();
                let about = entry.metadata().unwrap();
                if about.is_dir() {
                    directories.push(path.clone());
                }
                found.insert(path, about.len());
            }
        }
        found
    }

    /// The servers still answer those who ask rightly.
    fn assert_alive(&self) {
        for (name, serving) in &self.servers {
            let outcome = self.files.run_call(serving.address(), &[], b"file");
            let code = match *name {
                "AUTH" => 3,
                "FALSE" => 4,
                _ => 0,
            };
            assert_eq!(outcome.status.code(), Some(code), "{name}: {outcome:?}");
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A second server with the same state file is not opened, as long as the first lives (SPEC §12.1).

use std::path::PathBuf;
use std::time::{Duration, Instant};

use smt::{Builder, OpenError, TlsServer};

use crate::support::Credentials;

/// A state file for one test.
struct StateFile {
    path: PathBuf,
    credentials: Credentials,
}

impl StateFile {
    fn new(name: &str) -> Self {
        let name = format!("smt-one-{name}-{}", std::process::id());
        Self { path: std::env::temp_dir().join(name), credentials: Credentials::new() }
    }

    fn server(&self) -> Builder<TlsServer> {
        self.credentials.server().state_file(&self.path)
    }

    #[track_caller]
    fn assert_in_use(&self) {
        let blocking = self.server().bind_blocking("127.0.0.1:0").map(drop);
        let polled = self.server().bind_polled("127.0.0.1:0").map(drop);
        for outcome in [blocking, polled] {
            let error = outcome.unwrap_err();
            assert!(matches!(error, OpenError::StateFileInUse { .. }), "{error}");
            let holder = format!("in use by process {} on ", std::process::id());
            assert!(error.to_string().contains(&holder), "{error}");
        }
    }

    /// The endpoint's own thread may be about to end.
    #[track_caller]
    fn assert_is_free_soon(&self) {
        let end = Instant::now() + Duration::from_secs(10);
        while let Err(error) = self.server().bind_polled("127.0.0.1:0") {
            assert!(Instant::now() < end, "{error}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.path.with_extension("lock"));
        let _ = std::fs::remove_file(&self.path);
    }
}

// SMT [12.1-4]
#[test]
fn a_second_server_opens_only_when_the_first_is_gone() {
    let file = StateFile::new("blocking");
    let first = file.server().bind_blocking("127.0.0.1:0").unwrap();
    file.assert_in_use();
    drop(first);
    file.assert_is_free_soon();
}

#[test]
fn a_server_of_an_event_loop_has_a_state_file_alone() {
    let file = StateFile::new("polled");
    let first = file.server().bind_polled("127.0.0.1:0").unwrap();
    file.assert_in_use();
    drop(first);
    file.assert_is_free_soon();
}

#[test]
fn the_shards_of_one_server_share_a_state_file_until_the_last_is_gone() {
    let file = StateFile::new("shards");
    let shards = file.server().bind_shards_polled("127.0.0.1:0", 2).unwrap();
    let mut shards: Vec<_> = shards.into_iter().collect();
    shards.pop();
    file.assert_in_use();
    drop(shards);
    file.assert_is_free_soon();
}

#[test]
fn a_server_that_was_closed_leaves_no_lock_behind() {
    let file = StateFile::new("closed");
    let server = file.server().bind_blocking("127.0.0.1:0").unwrap();
    let lock = PathBuf::from(format!("{}.lock", file.path.display()));
    assert!(lock.exists());
    server.close(Duration::ZERO);
    assert!(!lock.exists());
    file.assert_is_free_soon();
    drop(server);
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Directories of tests.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory, removed at the end.
pub struct Directory(pub PathBuf);

impl Directory {
    /// Makes one of a name that no other test has.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it makes something")]
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("smt-device-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        // Other users may pass through.
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        Self(path)
    }

    /// The path of a file in it.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

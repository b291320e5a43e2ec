// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether a command's program is there: a server that can run nothing should not start.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::failure::{Doing, Failure};

/// Finds a program as the system does when it runs one: by its path, or in the directories of PATH.
///
/// # Errors
/// There is none of this name, or it cannot be executed.
pub(super) fn find(program: &str) -> Result<PathBuf, Failure> {
    let doing = || format!("--exec {program}");
    if program.contains('/') {
        return check(Path::new(program).to_owned()).doing(doing());
    }
    let directories = env::var_os("PATH").unwrap_or_else(|| OsString::from(PATH));
    let mut why =
        io::Error::new(io::ErrorKind::NotFound, "no such program in the directories of PATH");
    for directory in env::split_paths(&directories) {
        match check(directory.join(program)) {
            Ok(path) => return Ok(path),
            // One that is there and may not be executed says more than those that are not.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => why = error,
            Err(_) => {}
        }
    }
    Err(why).doing(doing())
}

fn check(path: PathBuf) -> io::Result<PathBuf> {
    if path.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    access(&path, Access::EXEC_OK)?;
    Ok(path)
}

/// The search path of programs if `PATH` is not set.
const PATH: &str = "/bin:/usr/bin";

#[cfg(test)]
mod tests {
    mod find {
        use std::fs;

        use super::super::find;
        use crate::scratch::Scratch;

        #[test]
        fn a_name_is_looked_up_in_path() {
            assert!(find("sh").unwrap().ends_with("sh"));
            let failure = find("no-such-program").unwrap_err();
            assert_eq!(
                failure.text(),
                "--exec no-such-program: no such program in the directories of PATH"
            );
        }

        #[test]
        fn a_path_is_that_of_a_file_that_can_be_executed() {
            let scratch = Scratch::new().unwrap();
            let file = scratch.path().join("text");
            let text = |path: &std::path::Path| {
                let failure = find(path.to_str().unwrap()).unwrap_err();
                failure.text().to_owned()
            };
            assert!(text(&file).contains("No such file"));
            fs::write(&file, "text").unwrap();
            assert!(text(&file).contains("Permission denied"));
            assert!(text(scratch.path()).contains("is a directory"));
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file that a request means.

use std::path::{Component, Path, PathBuf};

/// The path of a request below a folder. `None`: it leads out of the folder, or is none.
///
/// A `%` stands for itself: files whose names need an escape are not found.
#[must_use]
pub fn file_of(folder: &Path, path: &str) -> Option<PathBuf> {
    let relative = Path::new(path.strip_prefix('/')?);
    let mut components = relative.components();
    let is_below = components.all(|part| matches!(part, Component::Normal(_)));
    (is_below && relative.file_name().is_some()).then(|| folder.join(relative))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leads_out_of_the_folder_has_no_file() {
        let folder = Path::new("/srv");
        assert_eq!(file_of(folder, "/a/b"), Some(PathBuf::from("/srv/a/b")));
        for path in ["", "a", "/", "//etc/passwd", "/../a", "/a/../../b", "/.."] {
            assert_eq!(file_of(folder, path), None, "{path}");
        }
    }
}

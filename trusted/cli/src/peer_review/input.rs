// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The source's stream, read by a thread of its own.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Parts that are read ahead.
const AHEAD: usize = 64;

/// The stream in parts.
pub(crate) struct Input(Receiver<io::Result<Vec<u8>>>);

impl Input {
    /// Reads a file behind `length` bytes, or standard input for `-`, which has none of a time
    /// before.
    pub(crate) fn open(path: &Path, length: u64, part_bytes: usize) -> io::Result<Self> {
        let (sender, parts) = sync_channel(AHEAD);
        if path.as_os_str() == "-" {
            std::thread::spawn(move || read_parts(io::stdin(), part_bytes, &sender));
            return Ok(Self(parts));
        }
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_file() {
            if metadata.len() < length {
                let why = format!("it has {} bytes, and {length} were sent", metadata.len());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
            }
            file.seek(SeekFrom::Start(length))?;
        }
        std::thread::spawn(move || read_parts(file, part_bytes, &sender));
        Ok(Self(parts))
    }

    /// The next part, if one is there: an empty one at the end, once.
    pub(crate) fn next(&self) -> io::Result<Option<Vec<u8>>> {
        self.0.try_recv().ok().transpose()
    }
}

/// A part is what one read gives, and at most so long: what comes slowly does not wait for more.
fn read_parts(mut from: impl Read, part_bytes: usize, to: &SyncSender<io::Result<Vec<u8>>>) {
    let mut buffer = vec![0; part_bytes];
    loop {
        let part = match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.map(|length| buffer[..length].to_vec()),
        };
        let is_last = part.as_ref().map_or(true, Vec::is_empty);
        if to.send(part).is_err() || is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_stream_is_cut_into_parts_and_ends_with_an_empty_one() {
        let (sender, parts) = sync_channel(8);
        read_parts(&b"abcde"[..], 2, &sender);
        let parts: Vec<_> = parts.try_iter().map(Result::unwrap).collect();
        assert_eq!(parts, [&b"ab"[..], b"cd", b"e", b""]);
    }
}

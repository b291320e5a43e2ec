// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a capture is not shown to its end.

use std::io;
use std::path::PathBuf;

/// Which of the files it was, and why.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// It does not begin as pcap or pcapng does.
    #[error("this is no capture: {0}")]
    NoCapture(String),
    /// The capture cannot be read on, or contradicts its format.
    #[error("{}", told_capture(*frames, *byte, error))]
    Capture {
        /// Frames that were read before.
        frames: u64,
        /// Where in the file the next one would begin.
        byte: u64,
        /// The defect there, or the system's error.
        #[source]
        error: io::Error,
    },
    /// A whole message, or the directory of messages, cannot be written.
    #[error("writing {0}: {1}")]
    Message(PathBuf, #[source] io::Error),
    /// The capture with plaintext cannot be written.
    #[error("writing the decrypted capture: {0}")]
    Decrypted(#[source] io::Error),
    /// The output takes no lines.
    #[error("{0}")]
    Output(#[from] io::Error),
}

fn told_capture(frames: u64, byte: u64, error: &io::Error) -> String {
    let place = format!("behind its first {frames} frames, at byte {byte}");
    match error.kind() {
        io::ErrorKind::InvalidData => format!("the capture is damaged {place}: {error}"),
        _ => format!("the capture cannot be read {place}: {error}"),
    }
}

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
    /// The capture cannot be read, or contradicts its format.
    #[error("{0}")]
    Capture(#[source] io::Error),
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

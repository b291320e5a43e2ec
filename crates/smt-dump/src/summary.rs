// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a capture: what was shown, what was passed over, and what went wrong.

use crate::error::DumpError;
use crate::passed_over::PassedOver;

/// A summary of a capture, after all that was shown of it.
#[derive(Debug)]
pub struct Summary {
    /// A line for people.
    pub text: String,
    /// Frames of the capture.
    pub frames: u64,
    /// Packets of SMT in them.
    pub packets: u64,
    /// The frames without a datagram of UDP or natively over IP.
    pub passed_over: PassedOver,
    /// Some of the other ports to which datagrams went, in the order of their first one.
    pub other_ports: Vec<u16>,
    /// The file ends in the middle of a frame, as of a tcpdump that was killed.
    pub is_cut_short: bool,
    /// Why the capture was not read to its end, or its messages or plaintext not written. All that
    /// was read before is in the output.
    pub stopped_by: Option<DumpError>,
}

impl Summary {
    /// Whether no frame could be read, so that nothing is known about packets of SMT in them.
    pub fn is_unread(&self) -> bool {
        self.frames > 0 && self.passed_over.unread() == self.frames
    }
}

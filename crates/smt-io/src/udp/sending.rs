// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hands batches to the kernel, with as much offload as it has proved to take.
//!
//! 1. Cut the transmit into batches that one segmented send may hold.
//! 2. Send a batch by one call, with segment size, traffic class and source address attached where
//!    they differ from the socket's own.
//! 3. A report of the past that was in the way is noted, and the call made again
//!    (`icmp_report.rs`).
//! 4. A batch whose attachments the kernel refuses is sent without them (`offload_state.rs`).
//!
//! Not here: which system call that is (`linux.rs`, `portable.rs`).

use super::errno_class::ErrnoClass;
use super::icmp_report::told_apart;
use super::offload_state::Batch;
use super::{Family, Outgoing, UdpCarrier, class_of, send};
use crate::limits::{SEGMENTS_MAX, UDP_BYTES_MAX_IPV4, UDP_BYTES_MAX_IPV6};
use smt_carrier::{Path, SendError, Transmit};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

impl UdpCarrier {
    pub(super) fn send_all(&self, batch: &smt_carrier::Batch<'_>) -> Result<(), SendError> {
        let transmit = Transmit {
            path: batch.path,
            segment_size: batch.plain_segment_size(),
            priority: batch.priority,
            flow: batch.flow,
            association: None,
        };
        let bytes = batch.bytes;
        let remote = transmit.path.remote;
        if self.connected.is_some_and(|connected| connected != remote) {
            return Err(SendError::Other { code: libc::EISCONN });
        }
        let mut sent = 0;
        while sent < bytes.len() {
            sent += self
                .send_batch(&transmit, &bytes[sent..])
                .map_err(|class| class.to_send_error(sent))?;
        }
        Ok(())
    }

    /// Sends some datagrams off the front of `rest` and tells how many bytes they were.
    fn send_batch(&self, transmit: &Transmit, rest: &[u8]) -> Result<usize, ErrnoClass> {
        let batch = Batch {
            bytes: &rest[..self.batch_bytes(transmit).min(rest.len())],
            segment_size: transmit.segment_size,
            traffic_class: self.class_to_attach(transmit.priority),
        };
        let counters = &self.counters.sending;
        self.offload_state.send(batch, counters, |batch| self.attempt(transmit.path, batch))
    }

    /// Sends `batch` by one call, or a second one if the first may have told of the past only.
    fn attempt(&self, path: Path, batch: Batch<'_>) -> Result<(), ErrnoClass> {
        if !self.has_reports() {
            return self.call(path, batch);
        }
        let (outcome, report) = told_apart(|| self.call(path, batch));
        if let Some(queue) = &self.report_queue
            && (report.is_some() || outcome.is_err())
        {
            queue.fill(&self.socket);
        }
        if let Some(class @ (ErrnoClass::TooLarge | ErrnoClass::Unreachable)) = report {
            self.counters.sending.hints.add(1);
            if class == ErrnoClass::Unreachable {
                self.hint_pending.store(true, Ordering::Relaxed);
            }
        }
        outcome
    }

    /// One system call.
    fn call(&self, path: Path, batch: Batch<'_>) -> Result<(), ErrnoClass> {
        let segment_size = if batch.bytes.len() > batch.segment_size {
            // More than one segment fits a batch, so a segment is below 64 KiB.
            u16::try_from(batch.segment_size).ok()
        } else {
            None
        };
        let outgoing = Outgoing {
            to: self.destination(path.remote),
            ipv4: path.remote.is_ipv4(),
            source: path.local.filter(|_| self.wildcard),
            traffic_class: batch.traffic_class,
            segment_size,
            bytes: batch.bytes,
        };
        loop {
            self.counters.sending.calls.add(1);
            let sent = send(&self.socket, &outgoing);
            match sent.map_err(|error| ErrnoClass::of(error, self.has_reports())) {
                Ok(()) => break,
                Err(ErrnoClass::Interrupted) => {}
                Err(class) => return Err(class),
            }
        }
        self.counters.sending.note(batch.bytes.len(), batch.segment_size);
        Ok(())
    }

    /// Bytes of the longest batch that one call takes at present.
    fn batch_bytes(&self, transmit: &Transmit) -> usize {
        if !self.has_segmentation_offload() {
            return transmit.segment_size;
        }
        let largest = match transmit.path.remote {
            SocketAddr::V4(_) => UDP_BYTES_MAX_IPV4,
            SocketAddr::V6(_) => UDP_BYTES_MAX_IPV6,
        };
        let segments = (largest / transmit.segment_size).clamp(1, SEGMENTS_MAX);
        segments * transmit.segment_size
    }

    /// The traffic class byte to attach for `priority`, if it is not what the socket sends anyway.
    pub(super) fn class_to_attach(&self, priority: u8) -> Option<u8> {
        let class = class_of(priority);
        if class == self.plain_class || !self.offload_state.has_traffic_class() {
            return None;
        }
        Some(class)
    }

    /// `remote` in the socket's own family; nothing on a connected socket, which knows it.
    fn destination(&self, remote: SocketAddr) -> Option<SocketAddr> {
        if self.connected.is_some() {
            return None;
        }
        match remote {
            SocketAddr::V4(v4) if self.family == Family::Dual => {
                let mapped = v4.ip().to_ipv6_mapped();
                Some(SocketAddr::new(mapped.into(), v4.port()))
            }
            _ => Some(remote),
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Offloads that the system has proved to refuse, and the way in which a refused batch leaves all
//! the same.
//!
//! 1. Send the batch with everything attached: segment size, traffic class.
//! 2. Refused: send its first datagram alone; then alone and without traffic class.
//! 3. An offload that the plainer way proves unsupported is remembered and counted; the rest of the
//!    batch, and all later ones, go the plainer way.
//!
//! A refusal proves nothing until the plainer way succeeds: older kernels answer `EINVAL` to
//! segments that are merely too large, and some do to a source address that is not the host's. Not
//! here: the system call, and reports that look like refusals (`icmp_report.rs`).

use super::errno_class::ErrnoClass;
use crate::statistics::Sending;
use std::sync::atomic::{AtomicBool, Ordering};

/// Offloads that the system has not refused so far. An offload never comes back once lost.
#[derive(Debug)]
pub(super) struct OffloadState {
    segmentation: AtomicBool,
    traffic_class: AtomicBool,
}

/// Datagrams to send by one call if possible.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) segment_size: usize,
    /// The traffic class byte to attach, if any.
    pub(super) traffic_class: Option<u8>,
}

impl OffloadState {
    pub(super) const fn new(segmentation: bool) -> Self {
        Self { segmentation: AtomicBool::new(segmentation), traffic_class: AtomicBool::new(true) }
    }

    pub(super) fn has_segmentation(&self) -> bool {
        self.segmentation.load(Ordering::Relaxed)
    }

    pub(super) fn has_traffic_class(&self) -> bool {
        self.traffic_class.load(Ordering::Relaxed)
    }

    /// Sends some datagrams off the front of `batch` by `attempt`, which is one send, and tells how
    /// many bytes they were.
    pub(super) fn send(
        &self,
        batch: Batch<'_>,
        counters: &Sending,
        attempt: impl Fn(Batch<'_>) -> Result<(), ErrnoClass>,
    ) -> Result<usize, ErrnoClass> {
        match attempt(batch) {
            Ok(()) => return Ok(batch.bytes.len()),
            Err(ErrnoClass::Refused(_)) if batch.is_plainer_possible() => {}
            Err(class) => return Err(class),
        }
        let first = batch.first();
        if first.bytes.len() < batch.bytes.len() {
            match attempt(first) {
                Ok(()) => {
                    self.segmentation.store(false, Ordering::Relaxed);
                    counters.segmentation_refused.add(1);
                    return Ok(first.bytes.len());
                }
                Err(ErrnoClass::Refused(_)) if first.is_plainer_possible() => {}
                Err(class) => return Err(class),
            }
        }
        attempt(Batch { traffic_class: None, ..first })?;
        self.traffic_class.store(false, Ordering::Relaxed);
        counters.traffic_class_refused.add(1);
        Ok(first.bytes.len())
    }
}

impl<'a> Batch<'a> {
    /// The first datagram alone.
    fn first(self) -> Self {
        let end = self.segment_size.min(self.bytes.len());
        Self { bytes: &self.bytes[..end], ..self }
    }

    /// Whether anything is attached that could be left out.
    const fn is_plainer_possible(&self) -> bool {
        self.traffic_class.is_some() || self.bytes.len() > self.segment_size
    }
}

#[cfg(test)]
mod tests {
    use super::{Batch, ErrnoClass, OffloadState, Sending};

    mod send {
        use super::{Batch, ErrnoClass, OffloadState, Sending};
        use crate::udp::icmp_report::told_apart;
        use std::cell::Cell;

        const REFUSED: Result<(), ErrnoClass> = Err(ErrnoClass::Refused(libc::EINVAL));

        /// Sends ten bytes in segments of four at a class, to a system that answers by `attempt`;
        /// tells the outcome, the number of calls, and the remaining offload_state.
        fn sent(
            attempt: impl Fn(Batch<'_>) -> Result<(), ErrnoClass>,
        ) -> (Result<usize, ErrnoClass>, usize, OffloadState, Sending) {
            let batch = Batch { bytes: &[7; 10], segment_size: 4, traffic_class: Some(0xe0) };
            let (offload_state, counters) = (OffloadState::new(true), Sending::default());
            let calls = Cell::new(0);
            let outcome = offload_state.send(batch, &counters, |batch| {
                calls.set(calls.get() + 1);
                attempt(batch)
            });
            (outcome, calls.get(), offload_state, counters)
        }

        fn is_segmented(batch: &Batch<'_>) -> bool {
            batch.bytes.len() > batch.segment_size
        }

        #[test]
        fn accepted_batch_leaves_whole() {
            let (outcome, calls, offload_state, _) = sent(|_| Ok(()));
            assert_eq!((outcome, calls), (Ok(10), 1));
            assert!(offload_state.has_segmentation() && offload_state.has_traffic_class());
        }

        #[test]
        fn refused_segmentation_is_remembered_and_the_class_kept() {
            let (outcome, calls, offload_state, counters) =
                sent(|batch| if is_segmented(&batch) { REFUSED } else { Ok(()) });
            assert_eq!((outcome, calls), (Ok(4), 2));
            assert!(!offload_state.has_segmentation() && offload_state.has_traffic_class());
            assert_eq!(counters.segmentation_refused.value(), 1);
        }

        #[test]
        fn refused_class_is_remembered_and_segmentation_kept() {
            let (outcome, calls, offload_state, counters) =
                sent(|batch| if batch.traffic_class.is_some() { REFUSED } else { Ok(()) });
            assert_eq!((outcome, calls), (Ok(4), 3));
            assert!(offload_state.has_segmentation() && !offload_state.has_traffic_class());
            assert_eq!(counters.traffic_class_refused.value(), 1);
        }

        #[test]
        fn too_large_in_the_guise_of_a_refusal_teaches_nothing() {
            let (outcome, calls, offload_state, _) = sent(|batch| {
                if is_segmented(&batch) {
                    return REFUSED;
                }
                Err(ErrnoClass::TooLarge)
            });
            assert_eq!((outcome, calls), (Err(ErrnoClass::TooLarge), 2));
            assert!(offload_state.has_segmentation() && offload_state.has_traffic_class());
        }

        #[test]
        fn refusal_of_everything_teaches_nothing() {
            let (outcome, calls, offload_state, counters) = sent(|_| REFUSED);
            assert_eq!((outcome, calls), (Err(ErrnoClass::Refused(libc::EINVAL)), 3));
            assert!(offload_state.has_segmentation() && offload_state.has_traffic_class());
            assert_eq!(counters.segmentation_refused.value(), 0);
            assert_eq!(counters.traffic_class_refused.value(), 0);
        }

        #[test]
        fn full_queue_is_told_at_once() {
            let (outcome, calls, ..) = sent(|_| Err(ErrnoClass::Full));
            assert_eq!((outcome, calls), (Err(ErrnoClass::Full), 1));
        }

        #[test]
        fn report_in_the_guise_of_a_refusal_teaches_nothing() {
            let report = Cell::new(REFUSED);
            let (outcome, calls, offload_state, counters) =
                sent(|_| told_apart(|| report.replace(Ok(()))).0);
            assert_eq!((outcome, calls), (Ok(10), 1));
            assert!(offload_state.has_segmentation() && offload_state.has_traffic_class());
            assert_eq!(counters.segmentation_refused.value(), 0);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use smt_carrier::{Arrival, Carrier, Wait};
use smt_nic::psp::MasterKey;

use super::pair::Pair;

const MESSAGES: u64 = 300;

/// Threads send under two associations, one resets the devices and rotates keys, and one receives
/// and allocates while it does.
#[test]
fn no_iv_leaves_twice_and_nothing_stands_while_threads_send_reset_and_rotate() {
    let pair = Pair::new();
    let handles = [0; 2].map(|_| pair.associate().0);
    let is_over = AtomicBool::new(false);
    let mut allocated = Vec::new();
    thread::scope(|scope| {
        let senders = handles.map(|handle| {
            let pair = &pair;
            scope.spawn(move || (0..MESSAGES).for_each(|id| pair.send(Some(handle), 2 * id, 2_600)))
        });
        scope.spawn(|| {
            for round in (0..=u8::MAX).cycle() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                pair.near.reset_device();
                if round % 8 == 0 {
                    pair.far.rotate_device_key(MasterKey::new([round; 32]));
                    pair.far.reset_device();
                }
                thread::yield_now();
            }
        });
        let receiver = scope.spawn(|| {
            let associations = pair.far.associations().unwrap();
            let mut allocated = Vec::new();
            loop {
                let is_last = is_over.load(Ordering::Relaxed);
                let mut sink = |_: Arrival<'_>| allocated.extend(associations.allocate(0).ok());
                let count = pair.far.receive(&mut sink, Wait::Never).unwrap();
                if is_last && count == 0 {
                    break;
                }
            }
            allocated
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        allocated = receiver.join().unwrap();
    });
    let (clear, sealed) = pair.watch.counts();
    assert_eq!(clear, 0);
    assert_eq!(sealed as u64, 2 * MESSAGES * 2, "what was posted leaves before the device is free");
    assert!(!allocated.is_empty());
}

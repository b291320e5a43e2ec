// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A path that loses, repeats and reorders, by a seed.

use super::forwarder::Way;
use super::random::Random;

/// 1 % lost, 1 % twice, 1 % later than up to 20 others of its way.
pub(crate) fn lossy(seed: u64) -> impl FnMut(Way, &[u8]) -> Vec<(Way, Vec<u8>)> + Send {
    let mut random = Random::new(seed);
    let mut held: Vec<(usize, Way, Vec<u8>)> = Vec::new();
    move |way, datagram| {
        let mut out = Vec::new();
        match random.below(100) {
            0 => {}
            1 => out.extend([(way, datagram.to_vec()), (way, datagram.to_vec())]),
            2 => held.push((1 + random.below(20), way, datagram.to_vec())),
            _ => out.push((way, datagram.to_vec())),
        }
        for (left, of, _) in &mut held {
            *left -= usize::from(*of == way);
        }
        let due = held.extract_if(.., |(left, _, _)| *left == 0);
        out.extend(due.map(|(_, way, bytes)| (way, bytes)));
        out
    }
}

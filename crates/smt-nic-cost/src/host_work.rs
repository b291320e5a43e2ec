// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The work of a host for a call at the calling end, by the place of the transport, measured here.

use bytes::Bytes;
use smt_proto::Event;
use smt_testkit::EndpointPair;

use crate::message_host::MessageHost;
use crate::staged_exchange::StagedExchange;
use crate::stopwatch::{Stopwatch, least};
use crate::transport_device::{RingCounters, TransportDevice};

/// Where the transport is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TransportPlace {
    /// In the host, which seals and opens.
    Host,
    /// In the host; a NIC seals and opens, in no time.
    HostBehindCipher,
    /// In the device.
    Device,
}

/// The host's work for a call at the calling end, measured here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostWork {
    /// Seconds of the host, the least mean of some rounds. Looks at the clock are taken off; with a
    /// clock of nanoseconds, two of them for 32 calls leave about a tenth of one to chance.
    pub seconds: f64,
    /// Datagrams of a call, both ways; with the transport in the device they are its own.
    pub datagrams: f64,
    /// The rings' work for a call; none with the transport in the host.
    pub rings: RingCounters,
}

/// Measures calls of this length, 32 at a time. Datagrams have 1,472 bytes at most.
///
/// # Panics
/// If a call fails.
#[must_use]
pub fn measured(length: usize, rounds: u32, place: TransportPlace) -> HostWork {
    let pair = EndpointPair::new(1_472, place != TransportPlace::Host);
    match place {
        TransportPlace::Device => in_device(length, rounds, pair),
        _ => in_host(length, rounds, pair),
    }
}

fn in_host(length: usize, rounds: u32, pair: EndpointPair) -> HostWork {
    let mut exchange = StagedExchange::new(pair);
    let (request, stopwatch) = (Bytes::from(vec![7; length]), Stopwatch::new());
    let before = exchange.pair.datagrams;
    let seconds = least(rounds, |_| {
        let mut ended = 0;
        let mut seconds = stopwatch.seconds(|| begin(&mut exchange.pair, &request));
        while ended < AT_ONCE {
            seconds += stopwatch.seconds(|| exchange.client_sends());
            exchange.server_answers();
            seconds += stopwatch.seconds(|| {
                exchange.client_takes();
                ended += ended_calls(&mut exchange.pair);
            });
        }
        seconds / AT_ONCE as f64
    });
    let calls = AT_ONCE * u64::from(rounds);
    HostWork {
        seconds,
        datagrams: (exchange.pair.datagrams - before) as f64 / calls as f64,
        rings: RingCounters::default(),
    }
}

/// The client begins its calls.
fn begin(pair: &mut EndpointPair, request: &Bytes) {
    for _ in 0..AT_ONCE {
        let call = pair.client.call(pair.now, pair.sessions[0], request.clone(), None);
        call.expect("nothing stands in the way of a call");
    }
}

/// The client takes its replies. Returns how many there were.
///
/// # Panics
/// If a call has ended otherwise.
fn ended_calls(pair: &mut EndpointPair) -> u64 {
    let mut ended = 0;
    while let Some(event) = pair.client.poll_event() {
        match event {
            Event::Reply { .. } => ended += 1,
            other => panic!("a call has ended otherwise: {other:?}"),
        }
    }
    ended
}

fn in_device(length: usize, rounds: u32, pair: EndpointPair) -> HostWork {
    let mut device = TransportDevice::new(pair);
    let mut host = MessageHost::new(AT_ONCE as usize, length);
    let stopwatch = Stopwatch::new();
    let before = device.exchange.pair.datagrams;
    let seconds = least(rounds, |_| {
        let mut seconds = stopwatch.seconds(|| (0..AT_ONCE).for_each(|_| host.post()));
        while device.completed < host.posted {
            let turned = device.turn(&mut host.memory, host.posted);
            turned.expect("rings in the host's memory");
        }
        let first = host.reaped;
        // Replies come in any order, and each once.
        let mut cookies: u64 = 0;
        seconds += stopwatch.seconds(|| {
            for _ in 0..AT_ONCE {
                let cookie = host.reap().expect("a call that has succeeded");
                cookies |= 1 << (cookie - first);
            }
        });
        assert_eq!(cookies, (1 << AT_ONCE) - 1, "a completion came twice");
        seconds / AT_ONCE as f64
    });
    let calls = AT_ONCE * u64::from(rounds);
    let rings = device.counters;
    HostWork {
        seconds,
        datagrams: (device.exchange.pair.datagrams - before) as f64 / calls as f64,
        rings: RingCounters {
            descriptors: rings.descriptors / calls,
            completions: rings.completions / calls,
            pcie_bytes: rings.pcie_bytes / calls,
        },
    }
}

/// Calls that are under way at once.
const AT_ONCE: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    #[should_panic(expected = "a call has ended otherwise")]
    fn a_call_that_fails_is_told_and_not_waited_for() {
        let mut pair = EndpointPair::new(1_472, true);
        pair.connect(1);
        let deadline = Some(Duration::from_micros(1));
        let call = pair.client.call(pair.now, pair.sessions[0], Bytes::new(), deadline);
        call.expect("nothing stands in the way of a call");
        pair.now = pair.now + Duration::from_secs(1);
        pair.client.handle_timeout(pair.now);
        ended_calls(&mut pair);
    }

    #[test]
    fn a_call_through_the_rings_is_one_descriptor_and_one_completion() {
        for length in [0, 64, 3_000] {
            let work = measured(length, 2, TransportPlace::Device);
            let rings = RingCounters {
                descriptors: 1,
                completions: 1,
                pcie_bytes: 48 + 16 + 2 * length as u64,
            };
            assert_eq!(work.rings, rings, "{length} B");
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A cryptographic library that cannot try, for lack of memory, loses packets: no message fails,
//! and nothing counts as forged.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use smt_record::{Aead, AeadProvider, KeyLimits, Suite, Unavailable};
use smt_testkit::{CipherWatch, KeyWatch, WatchedCipher};

use super::support::configs::ethernet;
use super::support::{World, body, ms};

/// Ciphers of which one in three operations, or makings of one, is not tried: in no regular
/// order, which a handshake could keep step with.
#[derive(Clone, Default)]
struct Unsteady(Arc<AtomicUsize>);

impl Unsteady {
    fn attempt(&self) -> Result<(), Unavailable> {
        let attempt = self.0.fetch_add(1, Ordering::Relaxed) as u32;
        let hash = attempt.wrapping_mul(0x9E37_79B9).rotate_left(16) ^ attempt;
        match hash.wrapping_mul(0x85EB_CA6B) >> 16 {
            ..0x5555 => Err(Unavailable),
            _ => Ok(()),
        }
    }
}

impl CipherWatch for Unsteady {
    fn key(&self, _: &[u8], _: &[u8; 12]) -> Box<dyn KeyWatch> {
        Box::new(self.clone())
    }

    fn attempt(&self) -> Result<(), Unavailable> {
        self.attempt()
    }
}

impl KeyWatch for Unsteady {
    fn attempt(&self) -> Result<(), Unavailable> {
        self.attempt()
    }
}

/// A server and a client, one of which has these ciphers.
fn world_of(unsteady: usize, ciphers: Arc<dyn AeadProvider>) -> World {
    let mut configs = vec![ethernet(), ethernet()];
    configs[0].accept = true;
    for config in &mut configs {
        // Keys are renewed meanwhile, and a third of all pings and answers may be lost in a row.
        config.key_limits = KeyLimits::new(64, 32, 20).unwrap();
        config.silence_max = ms(60_000);
    }
    let mut world = World::new(configs);
    world.nodes[unsteady].endpoint.set_aead_provider(ciphers);
    world
}

#[test]
fn every_call_is_answered_and_nothing_counts_as_forged() {
    for unsteady in [0, 1] {
        let mut world = world_of(unsteady, Arc::new(WatchedCipher::new(Unsteady::default())));
        let session = world.connect(1, 0).unwrap().0;
        for round in 0..8 {
            for length in [0, 1, 1_000, 1_400, 20_000, 100_000] {
                let (request, now) = (body(round, length), world.now);
                let endpoint = &mut world.nodes[1].endpoint;
                let rpc = endpoint.call(now, session, request.clone(), None).unwrap();
                let outcome = world.outcome(1, rpc).map(|reply| reply == request);
                assert_eq!(outcome, Ok(true), "{length} bytes");
            }
        }
        for (at, node) in world.nodes.iter().enumerate() {
            let counted = node.endpoint.statistics();
            assert_eq!(counted.crypto_unavailable > 50, at == unsteady);
            assert_eq!((counted.records_failed, counted.controls_forged), (0, 0));
            assert_eq!((counted.violations, counted.packets_contradicting), (0, 0));
            assert!(counted.key_updates > 0);
        }
    }
}

#[test]
fn a_client_gives_up_in_time_when_nothing_can_be_sealed() {
    struct Nothing;
    impl AeadProvider for Nothing {
        fn aead(&self, _: Suite, _: &[u8], _: [u8; 12]) -> Result<Box<dyn Aead>, Unavailable> {
            Err(Unavailable)
        }
    }
    let mut world = world_of(1, Arc::new(Nothing));
    assert!(world.connect(1, 0).is_err());
    assert_eq!(world.nodes[0].endpoint.statistics().controls_forged, 0);
}

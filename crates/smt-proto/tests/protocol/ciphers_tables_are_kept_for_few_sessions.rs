// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server keeps the tables of so many sessions' ciphers, and makes those of the others each time
//! they are used.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use smt_proto::CloseCode;
use smt_testkit::{CipherWatch, KeyWatch, WatchedCipher};
use smt_wire::SessionIndex;

use super::support::configs::ethernet;
use super::support::{World, body, ms};

/// Counts the ciphers that there are.
#[derive(Clone, Default)]
struct Counted {
    made: Arc<AtomicUsize>,
    held: Arc<AtomicUsize>,
}

impl CipherWatch for Counted {
    fn key(&self, _key: &[u8], _iv: &[u8; 12]) -> Box<dyn KeyWatch> {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.held.fetch_add(1, Ordering::Relaxed);
        Box::new(Held(Arc::clone(&self.held)))
    }
}

/// A cipher that there is.
struct Held(Arc<AtomicUsize>);

impl KeyWatch for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A server that keeps the tables of `cipher_cache_sessions`, its clients' sessions, and its
/// ciphers.
fn server_of(clients: usize, cipher_cache_sessions: usize) -> (World, Vec<SessionIndex>, Counted) {
    let mut server = ethernet();
    server.accept = true;
    server.cipher_cache_sessions = cipher_cache_sessions;
    let configs = std::iter::once(server).chain((0..clients).map(|_| ethernet()));
    let mut world = World::new(configs.collect());
    let ciphers = Counted::default();
    let provider = Arc::new(WatchedCipher::new(ciphers.clone()));
    world.nodes[0].endpoint.set_aead_provider(provider);
    let connect = |client| world.connect(client, 0).unwrap().0;
    let sessions = (1..=clients).map(connect).collect();
    (world, sessions, ciphers)
}

/// Each client calls once; the most ciphers that the server has had after a call.
fn call_in_turn(world: &mut World, sessions: &[SessionIndex], ciphers: &Counted) -> usize {
    let mut most = 0;
    for (at, session) in sessions.iter().enumerate() {
        call(world, at + 1, *session);
        most = most.max(ciphers.held.load(Ordering::Relaxed));
    }
    most
}

fn call(world: &mut World, client: usize, session: SessionIndex) {
    let (request, now) = (body(client as u64, 5_000), world.now);
    let endpoint = &mut world.nodes[client].endpoint;
    let rpc = endpoint.call(now, session, request.clone(), None);
    assert!(world.outcome(client, rpc.unwrap()) == Ok(request));
}

/// The ciphers that a server makes for calls of four sessions, after `change` to a first one. The
/// server keeps the tables of one session, which was the first.
fn made_after(change: impl FnOnce(&mut World, SessionIndex)) -> usize {
    let (mut world, sessions, ciphers) = server_of(5, 1);
    world.run_for(ms(3_000));
    call_in_turn(&mut world, &sessions, &ciphers);
    change(&mut world, sessions[0]);
    let mut round = || {
        for client in 2..=5 {
            call(&mut world, client, sessions[client - 1]);
        }
        ciphers.made.load(Ordering::Relaxed)
    };
    let before = round();
    round() - before
}

#[test]
fn tables_are_kept_for_as_many_sessions_as_configured() {
    const CLIENTS: usize = 12;
    const ROUNDS: usize = 3;
    let kept_and_made = |cipher_cache_sessions| {
        let (mut world, sessions, ciphers) = server_of(CLIENTS, cipher_cache_sessions);
        let before = ciphers.made.load(Ordering::Relaxed);
        let kept = [(); ROUNDS].map(|()| call_in_turn(&mut world, &sessions, &ciphers));
        (kept[ROUNDS - 1], ciphers.made.load(Ordering::Relaxed) - before)
    };
    // A call takes two ciphers, to and from the peer, and there are two more for control packets.
    let (kept, made) = kept_and_made(CLIENTS);
    assert!(kept >= 2 * CLIENTS, "{kept}");
    assert!(made <= 2 * CLIENTS, "{made}");
    let (kept, made) = kept_and_made(2);
    assert!(kept <= 4 * (2 + 2), "{kept}");
    assert!(made >= ROUNDS * 2 * (CLIENTS - 2 - 2), "{made}");
    let (kept, made) = kept_and_made(0);
    assert_eq!(kept, 0);
    assert!(made >= ROUNDS * 2 * CLIENTS, "{made}");
}

#[test]
fn a_session_that_hibernates_or_has_ended_makes_room() {
    assert_eq!(made_after(|_, _| {}), 4 * 2);
    let rests = made_after(|world, _| world.run_for(ms(3_000)));
    assert_eq!(rests, 3 * 2);
    let has_ended = made_after(|world, session| {
        world.nodes[1].endpoint.close(session, CloseCode::Done);
        world.run_for(ms(1));
    });
    assert_eq!(has_ended, 3 * 2);
}

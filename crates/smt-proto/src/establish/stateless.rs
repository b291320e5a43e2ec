// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Answers that need no state: COOKIE, RESET, VERSION, UNAVAILABLE (SPEC §6.4, §12).
//!
//! Each is smaller than what caused it and rate-limited; none is ever sent in answer to one of
//! them.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use smt_carrier::Path;
use smt_wire::{Cookie, Reset, SessionIndex, Unavailable, VersionAnswer};

use crate::collections::address_token_buckets::AddressTokenBuckets;
use crate::collections::id_map::Salt;
use crate::collections::token_bucket::TokenBucket;
use crate::error::Unavailability;
use crate::key_exchange::{MacPurpose, TokenMac};
use crate::limits::{
    ANSWERS_PER_SECOND, ANSWERS_QUEUED, COOKIE_KEY_LIFE_SECS, COOKIE_LIFE_SECS,
    COOKIES_PER_ADDRESS, COOKIES_PER_SECOND,
};
use crate::time::Time;

/// The answers of an endpoint that wait to be sent, and the keys and rates for them.
pub(crate) struct Stateless {
    version: u8,
    /// The run of this host: its cookies are of no use in the next, whose clock begins where this
    /// one's did.
    boot: u32,
    mac: Arc<dyn TokenMac>,
    cookies: TokenBucket,
    cookies_by_address: AddressTokenBuckets,
    resets: TokenBucket,
    versions: TokenBucket,
    refusals: TokenBucket,
    queue: VecDeque<(Path, Vec<u8>)>,
}

impl Stateless {
    pub(crate) fn new(version: u8, boot: u32, mac: Arc<dyn TokenMac>) -> Self {
        let salt = table_salt(&*mac);
        Self {
            version,
            boot,
            mac,
            cookies: TokenBucket::new(COOKIES_PER_SECOND),
            cookies_by_address: AddressTokenBuckets::new(COOKIES_PER_ADDRESS, salt),
            resets: TokenBucket::new(ANSWERS_PER_SECOND),
            versions: TokenBucket::new(ANSWERS_PER_SECOND),
            refusals: TokenBucket::new(ANSWERS_PER_SECOND),
            queue: VecDeque::new(),
        }
    }

    /// Asks a client to show that it receives at its address. Returns whether it was queued.
    pub(crate) fn cookie(&mut self, now: Time, path: Path, client: SessionIndex) -> bool {
        let address = path.remote.ip();
        if !self.cookies_by_address.take(now, address) || !self.cookies.take(now) {
            return false;
        }
        let time = now.as_secs();
        let mut cookie = time.to_be_bytes().to_vec();
        cookie.extend_from_slice(&self.cookie_mac(time, path.remote, client));
        let packet = Cookie { destination: client, cookie: &cookie };
        let mut bytes = vec![0; COOKIE_PACKET_LEN];
        packet.emit(self.version, &mut bytes);
        self.push(path, bytes)
    }

    /// Whether a cookie is from this host, for this address and index, and fresh.
    pub(crate) fn is_cookie(
        &self,
        now: Time,
        remote: SocketAddr,
        client: SessionIndex,
        cookie: &[u8],
    ) -> bool {
        let Some((time, mac)) = cookie.split_first_chunk::<8>() else {
            return false;
        };
        let time = u64::from_be_bytes(*time);
        let age = now.as_secs().checked_sub(time);
        age.is_some_and(|age| age <= COOKIE_LIFE_SECS)
            && is_equal(&self.cookie_mac(time, remote, client), mac)
    }

    /// Tells the peer that a session is gone for good. Returns whether it was queued.
    pub(crate) fn reset(&mut self, now: Time, path: Path, index: SessionIndex) -> bool {
        if !self.resets.take(now) {
            return false;
        }
        let reset = Reset { index, token: self.reset_token(path, index) };
        let mut bytes = vec![0; Reset::LEN];
        let place = (&mut bytes[..]).try_into().expect("a vector of this length was just made");
        reset.emit(self.version, place);
        self.push(path, bytes)
    }

    /// The token that a RESET for this index must carry. This side's address is not in it: a
    /// session may have been established without knowing on which of its addresses it was called.
    pub(crate) fn reset_token(&self, path: Path, index: SessionIndex) -> [u8; 16] {
        let (address, port) = (octets(path.remote.ip()), path.remote.port().to_be_bytes());
        self.mac.mac(MacPurpose::Reset, &[&index.0.to_be_bytes(), &address, &port])
    }

    /// The salt of hash tables, which only this host knows.
    pub(crate) fn table_salt(&self) -> Salt {
        table_salt(&*self.mac)
    }

    /// Tells which version this endpoint speaks, if that is not longer than the question.
    pub(crate) fn version(&mut self, now: Time, path: Path, question_len: usize) {
        let answer = VersionAnswer { versions: core::slice::from_ref(&self.version) };
        if answer.packet_len() > question_len || !self.versions.take(now) {
            return;
        }
        let mut bytes = vec![0; answer.packet_len()];
        answer.emit(&mut bytes);
        self.push(path, bytes);
    }

    /// Tells a client why it is not taken. Returns whether it was queued.
    pub(crate) fn unavailable(
        &mut self,
        now: Time,
        path: Path,
        client: SessionIndex,
        why: Unavailability,
    ) -> bool {
        if !self.refusals.take(now) {
            return false;
        }
        let mut bytes = [0; Unavailable::LEN];
        let packet = Unavailable { destination: client, code: why.code() };
        packet.emit(self.version, &mut bytes);
        self.push(path, bytes.to_vec())
    }

    /// Whether no answer waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The next answer to send.
    pub(crate) fn pop(&mut self) -> Option<(Path, Vec<u8>)> {
        self.queue.pop_front()
    }

    fn cookie_mac(&self, time: u64, remote: SocketAddr, client: SessionIndex) -> [u8; 16] {
        let (address, port) = (octets(remote.ip()), remote.port().to_be_bytes());
        self.mac.mac(
            MacPurpose::Cookie { generation: time / COOKIE_KEY_LIFE_SECS },
            &[
                &self.boot.to_be_bytes(),
                &time.to_be_bytes(),
                &address,
                &port,
                &client.0.to_be_bytes(),
            ],
        )
    }

    fn push(&mut self, path: Path, bytes: Vec<u8>) -> bool {
        let fits = self.queue.len() < ANSWERS_QUEUED;
        if fits {
            self.queue.push_back((path, bytes));
        }
        fits
    }
}

/// Compares in constant time.
pub(crate) fn is_equal(ours: &[u8], theirs: &[u8]) -> bool {
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

fn table_salt(mac: &dyn TokenMac) -> Salt {
    let [a, b, c, d, ..] = mac.mac(MacPurpose::Tables, &[]);
    Salt(u32::from_be_bytes([a, b, c, d]))
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// Header, index, time and MAC.
pub(crate) const COOKIE_PACKET_LEN: usize = 12 + 8 + 8 + 16;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A sum that is no MAC, but tells inputs apart.
    struct Sum;

    impl TokenMac for Sum {
        fn mac(&self, purpose: MacPurpose, message: &[&[u8]]) -> [u8; 16] {
            let mut state = match purpose {
                MacPurpose::Reset => [255; 16],
                MacPurpose::Tables => [254; 16],
                MacPurpose::Cookie { generation } => [generation as u8; 16],
            };
            for (at, byte) in message.iter().flat_map(|part| part.iter()).enumerate() {
                state[at % 16] = state[at % 16].wrapping_mul(31).wrapping_add(*byte);
            }
            state
        }
    }

    fn path(text: &str) -> Path {
        Path::to(text.parse().unwrap())
    }

    #[test]
    fn the_salt_of_tables_comes_from_the_hosts_secret() {
        let stateless = Stateless::new(1, 7, Arc::new(Sum));
        let Salt(salt) = stateless.table_salt();
        assert_eq!(salt, u32::from_be_bytes([254; 4]));
    }

    #[test]
    fn a_cookie_is_for_one_address_and_index_and_a_short_time() {
        let mut stateless = Stateless::new(1, 7, Arc::new(Sum));
        let (here, index) = (path("192.0.2.1:7"), SessionIndex(5));
        let now = Time::from_nanos(100_000_000_000);
        assert!(stateless.cookie(now, here, index));
        let (_, packet) = stateless.pop().unwrap();
        let cookie = &packet[20..];
        assert!(stateless.is_cookie(now, here.remote, index, cookie));
        assert!(!stateless.is_cookie(now, path("192.0.2.1:8").remote, index, cookie));
        assert!(!stateless.is_cookie(now, path("192.0.2.2:7").remote, index, cookie));
        assert!(!stateless.is_cookie(now, here.remote, SessionIndex(6), cookie));
        assert!(!stateless.is_cookie(now + Duration::from_secs(16), here.remote, index, cookie));
        assert!(!stateless.is_cookie(now, here.remote, index, &cookie[..20]));
        assert!(!stateless.is_cookie(now, here.remote, index, &[]));
    }

    /// The next run's clock begins where this one's did, and its key may be the same.
    #[test]
    fn a_cookie_is_valid_for_this_run_of_the_host_only() {
        let [mut this, next] = [7, 8].map(|boot| Stateless::new(1, boot, Arc::new(Sum)));
        let (here, index) = (path("192.0.2.1:7"), SessionIndex(5));
        assert!(this.cookie(Time::default(), here, index));
        let (_, packet) = this.pop().unwrap();
        assert!(this.is_cookie(Time::default(), here.remote, index, &packet[20..]));
        assert!(!next.is_cookie(Time::default(), here.remote, index, &packet[20..]));
    }

    // SMT [12.1-1]
    #[test]
    fn a_reset_token_is_for_one_address_port_and_index() {
        let stateless = Stateless::new(1, 7, Arc::new(Sum));
        let token = |remote, index| stateless.reset_token(path(remote), SessionIndex(index));
        let here = token("192.0.2.1:7", 5);
        assert_ne!(token("192.0.2.1:8", 5), here);
        assert_ne!(token("192.0.2.2:7", 5), here);
        assert_ne!(token("192.0.2.1:7", 6), here);
        // The token is the same whichever address of this host was called.
        let by = Path::between(path("192.0.2.1:7").remote, [192, 0, 2, 9].into());
        assert_eq!(stateless.reset_token(by, SessionIndex(5)), here);
    }

    #[test]
    fn answers_are_bounded_in_rate_and_number() {
        let mut stateless = Stateless::new(1, 7, Arc::new(Sum));
        let sent = (0..10_000)
            .filter(|_| stateless.reset(Time::from_nanos(1), path("192.0.2.1:7"), SessionIndex(5)))
            .count();
        assert_eq!(sent, ANSWERS_QUEUED);
    }

    #[test]
    fn clients_that_are_not_taken_are_told_at_a_bounded_rate() {
        let mut stateless = Stateless::new(1, 7, Arc::new(Sum));
        let (client, why) = (SessionIndex(5), Unavailability::Full);
        let mut told = 0;
        for step in 0..10_000 {
            let now = Time::from_nanos(step * 100_000);
            let is_told = stateless.unavailable(now, path("192.0.2.1:7"), client, why);
            told += u32::from(is_told);
            stateless.pop();
        }
        // The burst is part of the bound.
        assert!((ANSWERS_PER_SECOND..=ANSWERS_PER_SECOND * 11 / 10).contains(&told));
    }

    #[test]
    fn versions_are_told_at_a_bounded_rate() {
        let mut stateless = Stateless::new(1, 7, Arc::new(Sum));
        let mut told = 0;
        for step in 0..10_000 {
            let now = Time::from_nanos(step * 100_000);
            stateless.version(now, path("192.0.2.1:7"), 1_200);
            told += u32::from(stateless.pop().is_some());
        }
        assert!((ANSWERS_PER_SECOND..=ANSWERS_PER_SECOND * 11 / 10).contains(&told));
    }

    // SMT [12.2-2]
    #[test]
    fn a_version_answer_is_never_longer_than_its_question() {
        let mut stateless = Stateless::new(1, 7, Arc::new(Sum));
        stateless.version(Time::default(), path("192.0.2.1:7"), 12);
        assert!(stateless.pop().is_none());
        stateless.version(Time::default(), path("192.0.2.1:7"), 13);
        assert_eq!(stateless.pop().unwrap().1.len(), 13);
    }
}

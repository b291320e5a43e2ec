// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes the hosts of a case, and endpoints anew for those that crash.
//!
//! Every endpoint is as production has it, but for TLS's randomness and a cipher library that is
//! watched.

use std::rc::Rc;
use std::sync::{Arc, Mutex};

use smt_carrier::Associations;
use smt_handshake::HmacTokens;
use smt_nic_driver::NicKeys;
use smt_proto::{Endpoint, Pull};
use smt_record::KeyLog;
use smt_testkit::WatchedCipher;

use super::case::{Case, Pulls};
use super::player::{Hosts, Player};
use crate::crypto::{Credentials, SeededTls};
use crate::net::nic_port::NicPort;
use crate::net::packet::HostId;
use crate::net::smt_host::SmtHost;
use crate::net::watched_engine::WatchedEngine;
use crate::random::Random;
use crate::swarm::check::{SealBook, SealWatch};

/// The parts of which hosts are made.
pub(super) struct HostMaker<'a> {
    case: &'a Case,
    credentials: Rc<Credentials>,
    /// The seals and openings of all hosts.
    pub(super) seals: Arc<Mutex<SealBook>>,
    key_log: Option<Arc<dyn KeyLog>>,
    /// How often each host has begun.
    boots: Vec<u32>,
    /// The keys that each host's NIC has, if the host has one.
    nic_keys: Vec<Option<Arc<NicKeys>>>,
    /// The associations of each host's NIC, if it seals packets.
    associations: Vec<Option<Arc<dyn Associations>>>,
}

impl<'a> HostMaker<'a> {
    /// With credentials for every host; `key_log` gets all hosts' keys.
    pub(super) fn new(case: &'a Case, key_log: Option<Arc<dyn KeyLog>>) -> Self {
        let seals: Arc<Mutex<SealBook>> = Arc::default();
        let keys_of = |at: usize| {
            let numbers_max = case.configs[at].key_limits.records();
            let library = WatchedCipher::new(SealWatch::new(Arc::clone(&seals), numbers_max));
            case.nics[at].map(|_| NicKeys::with_library(Arc::new(library), NIC_KEYS_MAX))
        };
        Self {
            case,
            credentials: Rc::new(Credentials::new(case.hosts(), case.certificates_longer_by)),
            key_log,
            boots: vec![0; case.hosts() as usize],
            nic_keys: (0..case.nics.len()).map(keys_of).collect(),
            associations: vec![None; case.nics.len()],
            seals,
        }
    }

    /// A host as it begins, with its part of the plan.
    pub(super) fn host(&mut self, id: HostId, random: &mut Random) -> SmtHost<Player> {
        let configs = &self.case.configs;
        let hosts = Hosts {
            odd_clocks: self.case.odd_clocks().collect(),
            limits: configs.iter().map(|config| config.message_limit).collect(),
            part_windows: configs.iter().map(|config| config.part_window).collect(),
        };
        let credentials = Rc::clone(&self.credentials);
        let nic = self.nic(id);
        self.associations[id.0 as usize] = nic.as_ref().and_then(NicPort::associations);
        let player = Player::new(id, credentials, hosts, random.fork());
        let mut host = SmtHost::new(id, self.endpoint(id, true, random), player);
        if let Some(delay) = self.case.accept_delay(id) {
            host.accept_after(delay);
            host.application.accepts_late = true;
        }
        host.capabilities = self.case.capabilities[id.0 as usize];
        host.nic = nic;
        let clock = host.clock;
        for planned in self.case.plan.iter().filter(|planned| planned.host == id) {
            let at = clock.at(planned.at);
            host.application.plan(at, planned.action.clone());
        }
        host
    }

    /// The NIC of a host.
    fn nic(&self, id: HostId) -> Option<NicPort> {
        let at = id.0 as usize;
        let (choices, keys) = (self.case.nics[at]?, self.nic_keys[at].clone()?);
        let numbers_max = self.case.configs[at].key_limits.records();
        let watch = SealWatch::new(Arc::clone(&self.seals), numbers_max);
        let engine = WatchedEngine::new(Box::new(watch));
        // Its own randomness: a host with a NIC draws what it would draw without.
        let random = Random::new(self.case.seed ^ NIC ^ u64::from(id.0));
        let mut nic = NicPort::new(choices, id.address(), keys, engine, random);
        if choices.driver.psp {
            nic.rotate_device_key();
        }
        Some(nic)
    }

    /// An endpoint of a host. With `keeps`, its boot number counts on and its reset key is the
    /// same.
    pub(super) fn endpoint(&mut self, id: HostId, keeps: bool, random: &mut Random) -> Endpoint {
        let at = id.0 as usize;
        let case = self.case;
        let mut config = case.configs[at].clone();
        let mut reset_key = [id.0 as u8; 32];
        if keeps {
            self.boots[at] += 1;
            config.boot = self.boots[at];
            config.durable_boot = true;
        } else {
            config.boot = random.any() as u32 | 1 << 31;
            random.fill(&mut reset_key);
        }
        let numbers_max = config.key_limits.records();
        let tls = SeededTls::new(&self.credentials, id, &case.suites[at], random.fork());
        let tokens = Arc::new(HmacTokens::new(reset_key));
        let mut endpoint = Endpoint::new(config, Arc::new(tls), tokens);
        if let Some(capabilities) = case.capabilities[at] {
            endpoint.set_capabilities(capabilities);
        }
        if let Some(keys) = &self.nic_keys[at] {
            endpoint.set_key_store(Arc::<NicKeys>::clone(keys));
        }
        if let Some(associations) = &self.associations[at] {
            endpoint.set_associations(Arc::clone(associations));
        }
        if let Some(Pulls { rate, window, order }) = case.pulls[at] {
            endpoint.set_pull_policy(Box::new(Pull::new(rate, window).in_order(order)));
        }
        let cipher = WatchedCipher::new(SealWatch::new(Arc::clone(&self.seals), numbers_max));
        endpoint.set_aead_provider(Arc::new(cipher));
        if let Some(log) = &self.key_log {
            endpoint.set_key_log(Arc::clone(log));
        }
        if case.accept_delay(id).is_some() {
            endpoint.queue_messages();
        }
        endpoint
    }
}

/// Keys that a host's NIC has room for.
const NIC_KEYS_MAX: usize = 64;
/// Keeps what a NIC draws apart from the rest.
const NIC: u64 = 0x21C0_0000;

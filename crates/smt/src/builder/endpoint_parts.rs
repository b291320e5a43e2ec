// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts with which an endpoint and all its shards begin: choices, credentials, boot number and
//! reset key.
//!
//! Shards only read it, and hardly that: an endpoint has a copy of the choices, and asks for the
//! rest when a session begins.

use std::sync::Arc;

use smt_carrier::Carrier;
use smt_handshake::HmacTokens;
use smt_io::UdpCarrier;
use smt_proto::key_exchange::{KeyExchangeProvider, TokenMac};
use smt_proto::{Config, Endpoint};
use smt_record::KeyLog;
use smt_wire::Shard;

use super::Builder;
use crate::clock::{Clock, WallTimeTold};
use crate::error::OpenError;
use crate::state_file::{BOOTS, StateFile};
use crate::state_lock::StateLock;

/// The parts from which endpoints are made.
pub(crate) struct EndpointParts {
    config: Config,
    provider: Arc<dyn KeyExchangeProvider>,
    mac: Arc<dyn TokenMac>,
    key_log: Option<Arc<dyn KeyLog>>,
    pub(crate) clock: Clock,
    pub(crate) has_dscp: bool,
    /// Every shard holds it as long as it lives.
    pub(crate) state_lock: Option<Arc<StateLock>>,
}

impl Builder {
    /// Takes the next boot number: once for all shards.
    pub(crate) fn endpoint_parts(&self, accept: bool) -> Result<EndpointParts, OpenError> {
        let mut config = self.config.clone();
        config.accept = accept;
        config.version = if self.is_plaintext() {
            smt_wire::PLAINTEXT_VERSION
        } else {
            smt_wire::VERSION
        };
        check(&config)?;
        self.check_credentials(accept)?;
        let provider = self.provider(accept)?;
        // Last: what is refused takes no boot number.
        let state_file = match &self.state_file {
            Some(path) => StateFile::next(path)?,
            None => StateFile::ephemeral()?,
        };
        config.boot = state_file.boot;
        config.boots = BOOTS;
        config.durable_boot = state_file.is_durable;
        Ok(EndpointParts {
            config,
            provider,
            mac: Arc::new(HmacTokens::new(*state_file.seed)),
            key_log: self.key_log.clone(),
            clock: Clock::new(),
            has_dscp: self.has_dscp,
            state_lock: state_file.lock.map(Arc::new),
        })
    }
}

impl EndpointParts {
    /// One shard's endpoint, which knows the wall time and the carrier's abilities. A socket is
    /// asked how much it can hold.
    pub(crate) fn endpoint(
        &self,
        shard: Shard,
        carrier: &dyn Carrier,
        udp: Option<&UdpCarrier>,
    ) -> OpenedEndpoint {
        let mut config = self.config.clone();
        config.shard = shard;
        if let Some(udp) = udp {
            // The kernel counts a packet's buffers too, up to twice its bytes.
            let third = u32::try_from(udp.receive_buffer_bytes() / 3).unwrap_or(u32::MAX);
            config.incoming_max = config.incoming_max.min(third.max(config.unscheduled));
        }
        let mut endpoint = Endpoint::new(config, Arc::clone(&self.provider), Arc::clone(&self.mac));
        let capabilities = carrier.capabilities();
        let has_priorities = capabilities.priorities && self.has_dscp;
        endpoint.set_capabilities(capabilities.with_priorities(has_priorities));
        if let Some(log) = &self.key_log {
            endpoint.set_key_log(Arc::clone(log));
        }
        let mut wall_time_told = WallTimeTold::default();
        wall_time_told.tell(self.clock.now(), &mut endpoint);
        OpenedEndpoint {
            endpoint,
            wall_time_told,
        }
    }
}

/// An endpoint, and when it was told the wall time.
pub(crate) struct OpenedEndpoint {
    pub(crate) endpoint: Endpoint,
    pub(crate) wall_time_told: WallTimeTold,
}

fn check(config: &Config) -> Result<(), OpenError> {
    let checks = [
        (
            (8..=17).contains(&config.index_bits),
            "`index_bits` must be 8 to 17",
        ),
        (
            (64..=16_384).contains(&config.record_size),
            "`record_size` must be 64 to 16,384",
        ),
        (
            (64..=1_142).contains(&config.first_record_size),
            "`first_record_size` must be 64 to 1,142",
        ),
        (
            config.window.is_power_of_two() && (64..=65_536).contains(&config.window),
            "`window` must be a power of two, 64 to 65,536",
        ),
        (config.stripes_log2 <= 8, "`stripes_log2` must be at most 8"),
        (
            (1_200..=65_507).contains(&config.datagram_limit),
            "`datagram_limit` must be 1,200 to 65,507",
        ),
        (
            config.unscheduled >= 1_164,
            "`unscheduled` must be at least 1,164, a whole first record",
        ),
        (config.sessions_max > 0, "`sessions_max` must not be 0"),
        (
            (1..=1 << 30).contains(&config.message_limit),
            "`message_limit` must be 1 B to 1 GiB",
        ),
    ];
    match checks.iter().find(|(holds, _)| !holds) {
        Some((_, text)) => Err(OpenError::Options(text)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use smt_carrier::Path;
    use smt_handshake::PlaintextProvider;
    use smt_io::MemoryCarrier;
    use smt_proto::key_exchange::{Attempt, HandshakeFailure};
    use smt_proto::{Time, WallTime};

    use super::*;

    /// Keeps the wall times that attempts are told.
    #[derive(Default)]
    struct Told(Mutex<Vec<Option<WallTime>>>);

    impl Told {
        fn last(&self) -> Option<WallTime> {
            self.0.lock().unwrap().last().copied().flatten()
        }
    }

    impl KeyExchangeProvider for Told {
        fn client(&self, name: &str, wall: Option<WallTime>) -> Result<Attempt, HandshakeFailure> {
            self.0.lock().unwrap().push(wall);
            PlaintextProvider.client(name, wall)
        }

        fn server(
            &self,
            params: &[u8],
            wall: Option<WallTime>,
        ) -> Result<Attempt, HandshakeFailure> {
            self.0.lock().unwrap().push(wall);
            PlaintextProvider.server(params, wall)
        }
    }

    #[test]
    fn an_endpoint_knows_the_wall_time_when_it_is_opened_and_goes_on_with_the_hosts_clock() {
        let told = Arc::new(Told::default());
        let trust = crate::pki::EphemeralCa::new().unwrap().trust().unwrap();
        let mut parts = Builder::new().trust(trust).endpoint_parts(false).unwrap();
        parts.provider = Arc::<Told>::clone(&told);
        let host = || Clock::wall_time().unwrap();
        let before = host();
        let OpenedEndpoint {
            mut endpoint,
            mut wall_time_told,
        } = parts.endpoint(Shard::default(), &MemoryCarrier::pair().0, None);
        let wall_at = |endpoint: &mut Endpoint, now: Time| {
            let path = Path::to(([127, 0, 0, 1], 1).into());
            let deadline = Duration::from_secs(5);
            endpoint.connect(now, path, "server", deadline).unwrap();
            told.last().expect("it was told")
        };
        let opened = parts.clock.now();
        assert!((before..=host()).contains(&wall_at(&mut endpoint, opened)));
        // The endpoint reckons on, far from the host's clock, until it is told again.
        let later = opened + Duration::from_secs(3_600);
        assert!(wall_at(&mut endpoint, later).as_secs() >= before.as_secs() + 3_600);
        wall_time_told.tell(later, &mut endpoint);
        assert!((before..=host()).contains(&wall_at(&mut endpoint, later)));
    }

    /// The choice that is refused.
    fn refused(change: impl FnOnce(&mut Config)) -> String {
        let Err(error) = Builder::new().configure(change).endpoint_parts(true) else {
            panic!("it was accepted")
        };
        error.to_string()
    }

    #[test]
    fn a_choice_out_of_range_is_named() {
        let refusals = [
            ("window", refused(|config| config.window = 100)),
            (
                "datagram_limit",
                refused(|config| config.datagram_limit = 65_508),
            ),
            ("message_limit", refused(|config| config.message_limit = 0)),
            (
                "message_limit",
                refused(|config| config.message_limit = u32::MAX),
            ),
        ];
        for (name, error) in refusals {
            assert!(error.contains(&format!("`{name}` must be")), "{error}");
        }
    }
}
